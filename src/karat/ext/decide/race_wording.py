"""Races and replays of races in words and as tables."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from karat.core.formatting import count, fixed, middle_cut, percent, precise_percent
from karat.ext.decide.racing import REMAINS
from karat.output.table import Table, text_column

if TYPE_CHECKING:
    from karat.ext.decide.race import Race, RaceReplay

#: columns of words
LEFT = ("status", "better or equal", "top")


def race_sentence(race: Race) -> str:
    """Return the answer in one sentence."""
    share = f"{race.jobs:,} of {race.full_jobs:,} jobs ({percent(1 - race.saved)})"
    spent = f"after {race.tasks_used} of {count(race.tasks, 'task')} and {share}"
    names = race.remaining
    if race.goal == "order":
        decided = int((race.models["status"] != REMAINS).sum())
        what = f"{decided} of {count(len(race.models), 'model')} have a decided place"
    elif race.outcome == "decided" and (race.goal == "best" and len(names) == 1):
        what = f"{names[0]} is the best of {count(len(race.models), 'model')}"
    elif race.outcome == "decided" and (race.models["status"] == "equivalent").any():
        what = f"{' and '.join(names)} are equivalent within {race.margin:g}"
    elif race.outcome == "decided":
        what = f"The best {len(names)} of {count(len(race.models), 'model')} are {', '.join(names)}"
    else:
        some = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
        what = f"Undecided: {some} remain of {count(len(race.models), 'model')}"
    stopped = "; stopped, resume continues" if race.outcome == "stopped" else ""
    return f"{what}, {spent}{stopped}."


def e_value_text(value: float) -> str:
    """Return an e-value with two digits.

    >>> e_value_text(31234.5), e_value_text(512.3), e_value_text(0.0312)
    ('3.1e4', '512', '0.031')
    """
    if value < 1000:
        return f"{value:.0f}" if value >= 10 else f"{value:.2g}"
    return f"{value:.1e}".replace("e+0", "e").replace("e+", "e")


def race_rows(race: Race) -> pd.DataFrame:
    """Return the models as text."""
    rows = race.models
    needed = rows["needed"].map(lambda value: "–" if math.isnan(value) else e_value_text(value))
    return pd.DataFrame(
        {
            "model": rows["model"],
            "place": [
                f"{low}" if low == high else f"{low} – {high}"
                for low, high in zip(rows["place_low"], rows["place_high"], strict=True)
            ],
            "status": rows["status"],
            "tasks": rows["tasks"].map(str),
            "jobs": rows["jobs"].map(str),
            "e-value": rows["e_value"].map(e_value_text),
            "needed": needed,
            "better or equal": rows["better"],
        }
    ).drop(columns=["e-value", "needed"] if race.goal == "order" else ["place"])


def race_table(race: Race) -> Table:
    """Return a row per model, those that remain first."""
    caption = f"race to the goal {race.goal}: {count(len(race.models), 'model')}"
    return _table(race_rows(race), caption)


def replay_sentence(replay: RaceReplay) -> str:
    """Return how many races were decided, with how many jobs, and whether they were right."""
    top = ", ".join(replay.models.loc[replay.models["top"], "model"])
    means = replay.orders[["best_kept", "top_kept", "same_top"]].mean()
    best_kept, top_kept, same_top = map(precise_percent, means)
    return (
        f"{_headline(replay)}. The best model ({replay.models['model'].iloc[0]}) was kept in "
        f"{best_kept}, the top group ({top}) in {top_kept}, and the leaderboard showed the "
        f"same top group in {same_top}."
    )


def _headline(replay: RaceReplay) -> str:
    """Return how many races were decided, and with how many jobs."""
    races, decided = len(replay.orders), int(replay.orders["decided"].sum())
    text = (
        f"{decided:,} of {races:,} races ({precise_percent(replay.decided)}) on "
        f"{count(len(replay.models), 'model')} and {count(replay.tasks, 'task')} reached their goal"
    )
    if decided:
        share = percent(1 / replay.times_fewer)
        text += f", with {share} of {replay.full_jobs:,} jobs on average "
        text += f"({fixed(replay.times_fewer, 1)} times fewer)"
    if decided < races:
        used = percent(float(replay.orders.loc[~replay.orders["decided"], "jobs"].mean()))
        text += f"; {races - decided:,} ran all tasks undecided ({used} of the jobs)"
    return text


def replay_rows(replay: RaceReplay) -> pd.DataFrame:
    """Return the models of a replay as text."""
    rows = replay.models
    return pd.DataFrame(
        {
            "model": rows["model"],
            "rank": [fixed(value, 2) for value in rows["rank"]],
            "top": np.where(rows["top"], "top", ""),
            "eliminated": [percent(share, 0) for share in rows["eliminated"]],
            "after tasks": [fixed(value, 1) for value in rows["after_tasks"]],
        }
    )


def replay_table(replay: RaceReplay) -> Table:
    """Return a row per model: its rank, and how often and when it was eliminated."""
    races = count(len(replay.orders), "race")
    return _table(replay_rows(replay), f"{races} to the goal {replay.goal}, in random orders")


def _table(rows: pd.DataFrame, caption: str) -> Table:
    first, *others = rows.columns
    return Table(
        groups=[],
        model=text_column(first, map(middle_cut, rows[first]), right=False),
        columns=[text_column(name, rows[name], right=name not in LEFT) for name in others],
        starts=[0],
        caption=caption,
        notes=[],
    )
