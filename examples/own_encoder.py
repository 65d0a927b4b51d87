"""Write an encoder, a metric and a corruption, and use them by name."""

import numpy as np
import pandas as pd

import karat


@karat.encoder("letters")
class Letters(karat.StatelessEncoder):
    """Count letters. Stateless, so its vectors are cached."""

    takes = ("text",)

    def __init__(self, alphabet="abcdefghijklmnopqrstuvwxyz"):
        self.alphabet = alphabet

    def transform(self, items):
        """Return one row of counts per text."""
        return np.array([[text.lower().count(c) for c in self.alphabet] for text in items])


@karat.metric("error", higher_is_better=False)
def error(predictions):
    """Share of wrong labels."""
    return float(np.mean(predictions.predictions != predictions.target))


@karat.corruption("shouting")
def shouting(X, y, severity, rng):
    """Turn texts to capitals with a probability of ``severity``."""
    loud = rng.random(len(X)) < severity
    return X.where(~loud, X.str.upper()), y


english = ["the cat sat on the mat", "where is the house", "this is a tree", "what do you want"]
german = ["die Katze sitzt", "wo ist das Haus", "das ist ein Baum", "was willst du jetzt"]
frame = pd.DataFrame({"text": english * 5 + german * 5, "language": ["en"] * 20 + ["de"] * 20})
frame["text"] += [f" {i}" for i in range(40)]

data = karat.Dataset.from_columns(frame, ["text"], "language", name="languages")
task = karat.Task("languages", data, metrics=["error", "acc"], corruptions={"shouting": [0.5, 1]})
(run,) = karat.evaluate("letters", task)
scores = run.scores()
print(scores.groupby(["corruption", "severity", "metric"], sort=False)["value"].mean())
# the encoder reads lower case, so shouting costs it nothing
assert scores[scores["metric"] == "error"]["value"].max() == 0
