"""TACO's five tables from small files in their format, and the synthetic tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from karat.compat.taco.readers import synthetic
from karat.config.catalog import Catalog
from karat.errors import DataError, DefinitionError, Unavailable

pytestmark = pytest.mark.usefixtures("download_settings")


NAMES = ("adult", "diabetes", "porto", "ieee", "nyc")
SYNTHETIC = ("diabetes", "porto", "ieee", "nyc")

ADULT = """\
age, workclass, education, hours-per-week, income
39, State-gov, Bachelors, 40, <=50K
50, ?, Bachelors, 13, >50K
38, Private, HS-grad, 40, <=50K.
53, Private, 11th, 40, >50K.
"""
DIABETES = """\
encounter_id,patient_nbr,race,age,weight,time_in_hospital,readmitted
2278392,8222157,Caucasian,[0-10),?,1,NO
149190,55629189,Caucasian,[10-20),?,3,>30
64410,86047875,?,[20-30),?,2,<30
500364,8222157,Caucasian,[30-40),[50-75),2,NO
"""
PORTO = """\
id,target,ps_ind_01,ps_ind_02_cat,ps_reg_03,ps_car_03_cat
7,0,2,2,0.718,-1
9,0,1,1,0.766,-1
13,1,5,4,-1.0,0
16,0,0,1,0.580,1
"""
IEEE = """\
TransactionID,isFraud,TransactionDT,TransactionAmt,ProductCD,card4,D1
2987000,0,86400,68.5,W,discover,14.0
2987001,0,86401,29.0,W,mastercard,
2987002,1,86469,59.0,C,visa,0.0
2987003,0,86499,50.0,W,,112.0
"""
NYC = """\
,BOROUGH,NEIGHBORHOOD,BLOCK,LOT,EASE-MENT,ADDRESS,APARTMENT NUMBER,ZIP CODE,\
GROSS SQUARE FEET,SALE PRICE
4,1,ALPHABET CITY             ,392,6, ,153 AVENUE B, ,10009,6440,6625000
5,1,ALPHABET CITY             ,399,26, ,234 EAST 4TH   STREET, ,10009, -  , -
6,1,CHELSEA                   ,399,39, ,197 EAST 3RD   STREET, ,10011,"2,272",0
7,2,CHELSEA                   ,402,21, ,154 EAST 7TH STREET, ,10009, -  ,10
8,3,HARLEM                    ,404,55, ,301 EAST 10TH   STREET, ,10009,2050,"1,000,000"
"""
FILES = {
    "adult": ("adult.csv", ADULT),
    "diabetes": ("diabetes_130_us_hospitals.csv", DIABETES),
    "porto": ("porto_seguro.csv", PORTO),
    "ieee": ("ieee_cis_fraud.csv", IEEE),
    "nyc": ("nyc_property_sales.csv", NYC),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("KARAT_DATA", str(tmp_path))
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    return tmp_path


@pytest.fixture
def load(folder):
    """Write a data set's file, the usual one or another, and load it."""

    def make(name: str, text: str | None = None, file: str | None = None):
        path = folder / (file or FILES[name][0])
        path.parent.mkdir(exist_ok=True)
        path.write_text(FILES[name][1] if text is None else text)
        return Catalog().dataset(f"taco_{name}")()

    return make


def test_adult(load):
    data = load("adult")
    assert data.target.tolist() == ["no", "yes", "no", "yes"] and data.classes == ("no", "yes")
    assert list(data.items) == ["age", "workclass", "education", "hours-per-week"]
    assert data.items["workclass"].isna().tolist() == [False, True, False, False]
    assert data.items["education"].tolist() == ["Bachelors", "Bachelors", "HS-grad", "11th"]
    assert pd.api.types.is_integer_dtype(data.items["hours-per-week"])


def test_diabetes(load):
    data = load("diabetes")
    # readmitted after more than 30 days is not within 30 days
    assert data.target.tolist() == ["no", "no", "yes", "no"]
    assert list(data.items) == ["race", "age", "weight", "time_in_hospital"], "no id is a feature"
    assert data.items["weight"].isna().sum() == 3 and data.items["race"].isna().sum() == 1
    assert data.group.tolist() == [8222157, 55629189, 86047875, 8222157]


def test_porto(load):
    data = load("porto")
    assert data.target.tolist() == ["no", "no", "yes", "no"]
    assert list(data.items) == ["ps_ind_01", "ps_ind_02_cat", "ps_reg_03", "ps_car_03_cat"]
    # -1 is a missing value, also when written as -1.0
    assert data.items["ps_reg_03"].isna().tolist() == [False, False, True, False]
    assert data.items["ps_car_03_cat"].isna().tolist() == [True, True, False, False]


def test_ieee(load):
    data = load("ieee")
    assert data.target.tolist() == ["no", "no", "yes", "no"]
    assert "TransactionID" not in data.items and "isFraud" not in data.items
    assert data.items["D1"].isna().sum() == 1 and data.items["card4"].isna().sum() == 1


def test_nyc(load):
    data = load("nyc")
    # 0 and 10 dollars and a dash are no sales
    assert data.target.tolist() == pytest.approx([np.log(6625001), np.log(1000001)])
    assert data.kind == "regression"
    assert list(data.items) == ["BOROUGH", "NEIGHBORHOOD", "ZIP CODE", "GROSS SQUARE FEET"]
    assert data.items["NEIGHBORHOOD"].tolist() == ["ALPHABET CITY", "HARLEM"]
    assert data.items["GROSS SQUARE FEET"].tolist() == [6440.0, 2050.0], "numbers, not text"


def test_dashes_with_spaces_are_missing_numbers(load):
    data = load("nyc", NYC.replace(", -  , -\n", ", -  ,500000\n").replace('",0\n', '",700000\n'))
    feet = data.items["GROSS SQUARE FEET"]
    assert feet.dtype == float and np.isnan(feet[1])
    assert feet[2] == 2272, "commas in thousands and dashes in one column"


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("adult", "income", "class"),
        ("adult", "income", "Income"),
        ("nyc", "SALE PRICE", "sale_price"),
        ("nyc", "SALE PRICE", "SALE_PRICE"),
    ],
)
def test_other_names_of_the_target(load, name, old, new):
    usual = load(name)
    other = load(name, FILES[name][1].replace(old, new))
    assert other.target.tolist() == usual.target.tolist()
    assert list(other.items) == list(usual.items)


def test_flag_of_0_and_1_is_a_target(load):
    text = DIABETES.replace("readmitted", "readmitted_flag")
    text = text.replace("NO\n", "0\n").replace(",>30\n", ",0\n").replace(",<30\n", ",1\n")
    assert load("diabetes", text).target.tolist() == ["no", "no", "yes", "no"]
    assert load("ieee", IEEE.replace(",1,86469", ",1.0,86469")).target.tolist()[2] == "yes"


def test_other_target_columns_are_not_features(load):
    lines = DIABETES.splitlines()
    flags = ["readmitted_flag", "0", "0", "1", "0"]
    both = "\n".join(f"{line},{flag}" for line, flag in zip(lines, flags, strict=True))
    assert list(load("diabetes", both).items) == ["race", "age", "weight", "time_in_hospital"]


def test_column_called_group_stays_a_feature(load):
    lines = DIABETES.splitlines()
    cells = ["group", "a", "b", "a", "b"]
    data = load("diabetes", "\n".join(f"{c},{line}" for c, line in zip(cells, lines, strict=True)))
    assert data.items["group"].tolist() == ["a", "b", "a", "b"]
    assert data.group.tolist()[0] == 8222157


def test_rows_without_a_target_are_dropped(load):
    data = load("ieee", IEEE.replace("2987001,0", "2987001,"))
    assert len(data) == 3 and data.items["TransactionAmt"].tolist() == [68.5, 59.0, 50.0]


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("diabetes", "diabetic_data.csv"),
        ("porto", "porto_seguro/train.csv"),
        ("ieee", "ieee_cis_fraud/train_transaction.csv"),
        ("nyc", "nyc_property_sales/nyc-rolling-sales.csv"),
    ],
)
def test_file_under_the_name_its_site_gives_it(load, name, file):
    assert len(load(name, file=file)) >= 2


@pytest.mark.parametrize("name", NAMES)
def test_about(load, name):
    about = load(name).about
    assert about["source"] == f"folder {FILES[name][0]}" and len(about["sha256"]) == 64
    assert about["license"] and about["citation"] and about["homepage"]
    assert "synthetic" not in str(about).lower()


@pytest.mark.parametrize("name", NAMES[1:])
def test_missing_file_names_where_to_put_it(folder, name):
    with pytest.raises(Unavailable) as error:
        Catalog().dataset(f"taco_{name}")()
    assert f"$KARAT_DATA/{FILES[name][0]}" in str(error.value)


@pytest.mark.parametrize("name", NAMES)
def test_wrong_file_is_reported_with_its_path(load, folder, name):
    with pytest.raises(DataError) as error:
        load(name, "a,b\n1,2\n")
    message = str(error.value)
    assert str(folder / FILES[name][0]) in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        ("adult", "age,income\n3,low\n4,high\n", "low, high"),
        ("adult", "age,income\n3,2\n4,1\n", " 2, 1"),
        ("ieee", "a,isFraud\n3,0\n4,0\n", "got 0"),
        ("porto", "a,target\n3,10\n4,1\n", " 10, 1"),
        ("nyc", "a,SALE PRICE\n3,0\n4,1000\n", " 0, 1000"),
        ("nyc", "a,SALE PRICE\n3,none\n4,much\n", "none, much"),
        ("diabetes", "", "is empty."),
        ("diabetes", "patient_nbr,readmitted\n", "a header and no rows."),
    ],
)
def test_invalid_targets_are_reported_with_the_path(load, folder, name, text, word):
    with pytest.raises(DataError, match=word) as error:
        load(name, text)
    assert str(folder / FILES[name][0]) in str(error.value)


def test_one_class_alone_is_refused(load):
    with pytest.raises(DataError, match="only one class"):
        load("porto", "a,target\n3,1\n4,1\n")


def test_similar_column_is_suggested(load):
    with pytest.raises(DataError, match='"isfraud"'):
        load("ieee", IEEE.replace("isFraud", "isfraud"))


@pytest.mark.parametrize("name", SYNTHETIC)
def test_synthetic_data_are_marked_everywhere(name):
    catalog = Catalog()
    data = catalog.dataset(f"taco_{name}_synthetic")()
    assert data.name == f"taco_{name}_synthetic"
    assert data.about["title"].startswith("SYNTHETIC, no real row")
    assert data.about["source"] == "synthetic: made up by Karat, no real row"
    task = catalog.task(f"taco-{name}-synthetic")
    assert task.dataset().name == data.name
    suite = catalog.suite("taco-synthetic")
    assert suite.description.startswith("SYNTHETIC") and task.name in [t.name for t in suite]


@pytest.mark.parametrize("name", SYNTHETIC)
def test_synthetic_data_are_reproducible(name):
    one, two, other = (
        synthetic("a synthetic one", name, rows=300, seed=seed) for seed in (0, 0, 1)
    )
    assert one.fingerprint == two.fingerprint != other.fingerprint
    assert len(one) == 300 and one.items.shape[1] >= 6
    kinds = {pd.api.types.is_numeric_dtype(dtype) for dtype in one.items.dtypes}
    assert kinds == {True, False}, "numbers and categories, so that every corruption finds some"


@pytest.mark.parametrize(("name", "share"), [("diabetes", 0.11), ("porto", 0.04), ("ieee", 0.035)])
def test_synthetic_data_have_real_class_shares(name, share):
    data = synthetic("synthetic", name, rows=2000)
    assert data.classes == ("no", "yes")
    assert data.shares()["yes"] == pytest.approx(share, abs=0.001)


def test_synthetic_data_can_be_learned_imperfectly():
    from sklearn.metrics import r2_score
    from sklearn.tree import DecisionTreeRegressor

    data = synthetic("synthetic", "nyc", rows=3000)
    numbers = data.items.select_dtypes("number")
    model = DecisionTreeRegressor(max_depth=5, random_state=0).fit(
        numbers[:2000], data.target[:2000]
    )
    assert 0.2 < r2_score(data.target[2000:], model.predict(numbers[2000:])) < 0.9


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (("x synthetic", "adult"), '"adult"'),
        (("diabetes", "diabetes"), '"synthetic"'),
        (("synthetic", "nyc", 0), "100"),
        (("synthetic", "nyc", 250.5), r"250\.5"),
    ],
)
def test_invalid_synthetic_data(given, word):
    with pytest.raises(DefinitionError, match=word):
        synthetic(*given)
