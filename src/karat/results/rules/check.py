"""The table of rules, and what they find in some runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from importlib import resources
from pathlib import Path

import pandas as pd

from karat.errors import DefinitionError, did_you_mean
from karat.results.rules import data, learning, models, runs, statistics
from karat.results.rules.base import LEVELS, Facts, Finding, Findings, Rule
from karat.results.run import Run

RULES = (
    Rule(
        "KRT001",
        "Test rows that stand in the train part",
        "warning",
        "Drop duplicates, or give the task a group so that equal rows stay together.",
        data.duplicates,
    ),
    Rule(
        "KRT002",
        "The same entity in train and test",
        "warning",
        "Name the entity's column as the group of the data set, so that it stays on one side.",
        data.entities,
    ),
    Rule(
        "KRT003",
        "One column gives the answer away",
        "warning",
        "Find out how the column came about; drop it if it was made from the answer.",
        data.give_away,
    ),
    Rule(
        "KRT004",
        "One class is most of the rows",
        "warning",
        "Compare by balacc, auc or pr_auc: --metric TASK=balacc.",
        data.imbalance,
    ),
    Rule(
        "KRT101",
        "Worse than chance",
        "warning",
        "Look for a bug: mixed-up rows, a lost column, items it does not know.",
        models.worse_than_random,
    ),
    Rule(
        "KRT102",
        "No better than raw features",
        "note",
        "Say so when you report the model; more folds may tell small differences.",
        models.no_better_than_raw,
    ),
    Rule(
        "KRT103",
        "Dimensions that say nothing",
        "note",
        "Drop them; many of them hint at dead units or a column that is not read.",
        models.constant_dimensions,
    ),
    Rule(
        "KRT104",
        "Unlike items with the same vector",
        "warning",
        "Look at the items: out of its vocabulary, cut to the same beginning, or not read at all?",
        models.same_vectors,
    ),
    Rule(
        "KRT105",
        "Low coverage",
        "warning",
        "Compare on the questions that all know, or let the task penalise what is missing.",
        models.low_coverage,
    ),
    Rule(
        "KRT106",
        "Vectors of very unlike lengths",
        "note",
        "Scale the vectors to length 1, or look at the items with the longest ones.",
        models.unlike_lengths,
    ),
    Rule(
        "KRT201",
        "Did not converge",
        "warning",
        "Allow more iterations (max_iter of the head), or scale the vectors.",
        learning.unconverged,
    ),
    Rule(
        "KRT202",
        "Unstable with the seed",
        "warning",
        "Report the mean over several seeds, or make what learns more stable.",
        learning.unstable,
    ),
    Rule(
        "KRT301",
        "Saturated task",
        "note",
        "Do not choose between models by this task; take a harder one.",
        statistics.saturated,
    ),
    Rule(
        "KRT302",
        "First and second too close for the rows",
        "note",
        "Call it a tie, or test on more rows or folds.",
        statistics.too_few_rows,
    ),
    Rule(
        "KRT401",
        "Scores changed though nothing did",
        "error",
        "Find what is not seeded, or what depends on the machine or its libraries.",
        runs.changed,
    ),
    Rule(
        "KRT402",
        "Failed jobs",
        "warning",
        "The board fills them by its rule for missing scores; karat run … --resume --retry-failed.",
        runs.failed,
    ),
    Rule(
        "KRT403",
        "Several versions of Karat",
        "warning",
        "Run all models again with one version.",
        runs.versions,
    ),
    Rule(
        "KRT404",
        "Several seeds",
        "warning",
        "Run all models with the same seeds; other seeds make other folds.",
        runs.seeds,
    ),
    Rule(
        "KRT405",
        "One task, several versions of its data",
        "note",
        "Run all models again on one version of the data.",
        runs.other_data,
    ),
)


def check_runs(
    runs: pd.DataFrame | Run | str | Path | Iterable[Run | str | Path], ignore: Iterable[str] = ()
) -> Findings:
    """Return what the checks find in runs, run folders, folders of those, or a table of scores.

    ``ignore`` silences checks by their code, or by its beginning: ``KRT1`` is all about models. A
    task silences with ``ignore`` in its definition. Names of models and tasks are those of the
    leaderboard of the same runs. What is silenced is counted in ``silenced``.
    """
    quiet = check_codes(ignore)
    facts = Facts.of(runs)
    found, silenced = [], Counter[str]()
    for rule in RULES:
        for hit in rule.look(facts):
            own = facts.tasks.get(hit.task or "", {}).get("ignore") or ()
            if rule.code.startswith((*quiet, *own)):
                silenced[rule.code] += 1
            else:
                where = (hit.model, hit.task)
                found.append(Finding(rule.code, rule.level, *where, hit.message, rule.advice))
    found.sort(key=lambda each: (LEVELS.index(each.level), each.code))
    return Findings(found, silenced)


def check_codes(codes: Iterable[str]) -> tuple[str, ...]:
    """Return codes that are to be silent; one that no check has is a mistake.

    >>> check_codes(["krt004", "KRT3"])
    ('KRT004', 'KRT3')
    """
    wanted = [codes] if isinstance(codes, str) else list(codes)
    known = [rule.code for rule in RULES]
    for code in wanted:
        begins = len(code) > 3 and any(each.startswith(code.upper()) for each in known)
        if not begins:
            raise DefinitionError(
                f'there is no check "{code}".{did_you_mean(code, known)}   (karat checks --list)'
            )
    return tuple(code.upper() for code in wanted)


def rule_of(code: str) -> Rule:
    """Return the rule of a code; a code that no check has is a mistake."""
    found = next((rule for rule in RULES if rule.code == code.upper()), None)
    if found is None:
        hint = did_you_mean(code, [rule.code for rule in RULES])
        raise DefinitionError(f'there is no check "{code}".{hint}   (karat checks --list)')
    return found


def render_page(rule: Rule) -> str:
    """Return the page of a check as Markdown: what it means, how it is computed, what to do."""
    body = resources.files("karat.results.rules") / "pages" / f"{rule.code}.md"
    return (
        f"# {rule.code}: {rule.title}\n\nLevel: {rule.level}.\n\n"
        f"{body.read_text(encoding='utf-8')}\n"
        f"To silence it, use `--ignore {rule.code}`, or `ignore: [{rule.code}]` in the task.\n"
    )


def explain(code: str) -> str:
    """Return the page of the check with this code as Markdown; see ``render_page``."""
    return render_page(rule_of(code))


def index_table(folder: str = "checks") -> str:
    """Return the table of all checks as Markdown, each with a link to its page."""
    rows = [
        f"| [{rule.code}]({folder}/{rule.code}.md) | {rule.level} | {rule.title} |"
        for rule in RULES
    ]
    return "\n".join(["| code | level | what |", "|---|---|---|", *rows]) + "\n"
