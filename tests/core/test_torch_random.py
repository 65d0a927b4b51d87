import numpy as np
import pytest

from karat.core.torch_random import MASTER, TorchGenerator, bootstrap_seed, fold_seeds, repetitions


def test_seeds_are_those_of_the_original():
    first = next(repetitions(10, 5))
    assert first.cut == 865890962
    assert first.weights == (2464987226, 3442928275, 244800193, 870809707, 3528135495)
    assert first.orders == (3161574360, 645645678, 2341447860, 1293698719, 3673899258)
    assert bootstrap_seed(10) == 1260762361
    assert MASTER == 9847706


def test_folds_are_counted_through_all_repetitions():
    third = list(repetitions(3, 4))[2]
    assert fold_seeds(9, 4) == (third.weights[1], third.orders[1])
    assert fold_seeds(0, 5) == (2464987226, 3161574360)


def test_more_repetitions_leave_the_earlier_ones_as_they_are():
    few, many = list(repetitions(2, 5)), list(repetitions(7, 5))
    assert [each.weights for each in few] == [each.weights for each in many[:2]]


# What PyTorch 2.13 gives for a seed, written down so that the test needs no PyTorch.
TORCH_WEIGHTS = [
    [0.04032507538795471, -0.3477921187877655, 0.18384182453155518],
    [0.1811612844467163, -0.3085803687572479, -0.0865316316485405],
]
TORCH_ORDERS = [[1, 3, 5, 7, 9, 4, 6, 2, 8, 0], [5, 1, 6, 0, 9, 7, 8, 4, 3, 2]]


def test_weights_are_those_of_pytorch():
    # torch.manual_seed(7); torch.nn.Linear(3, 2, bias=False).weight
    drawn = TorchGenerator(7).weights(3, 2).T.tolist()
    assert drawn == TORCH_WEIGHTS


def test_orders_are_those_of_a_pytorch_data_loader():
    # two epochs of DataLoader(range(10), shuffle=True, generator=Generator().manual_seed(7))
    words = TorchGenerator(7)
    assert [words.epoch(10).tolist() for _ in range(2)] == TORCH_ORDERS


@pytest.mark.parametrize("size", [1, 2, 37])
def test_an_order_has_every_place_once(size):
    assert sorted(TorchGenerator(3).order(size).tolist()) == list(range(size))


def test_against_pytorch_itself():
    torch = pytest.importorskip("torch")
    for seed in (0, 2464987226, 2**32 - 2):
        torch.manual_seed(seed)
        layers = [torch.nn.Linear(37, 256, bias=False), torch.nn.Linear(256, 3)]
        words = TorchGenerator(seed)
        for layer in layers:
            drawn = words.weights(layer.in_features, layer.out_features)
            assert np.array_equal(layer.weight.detach().numpy().T, drawn)
        generator = torch.Generator().manual_seed(seed)
        rows = torch.utils.data.TensorDataset(torch.arange(700))
        loader = torch.utils.data.DataLoader(rows, 128, shuffle=True, generator=generator)
        words = TorchGenerator(seed)
        for _ in range(3):
            given = torch.cat([batch[0] for batch in loader]).numpy()
            assert np.array_equal(given, words.epoch(700))
