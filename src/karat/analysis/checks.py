"""The table of rules, and the findings of all rules in some runs."""

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
        "Test rows duplicated in the training rows",
        "warning",
        "Drop duplicates, or give the dataset a group so that equal rows stay together.",
        data.duplicates,
    ),
    Rule(
        "KRT002",
        "The same entity in train and test",
        "warning",
        "Set the dataset's group to the entity's column, so that it stays in one fold.",
        data.entities,
    ),
    Rule(
        "KRT003",
        "One column predicts the target",
        "warning",
        "Find out how the column was made; drop it if it was derived from the target.",
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
        "Look for a bug: rows in another order, a lost column, items without a vector.",
        models.worse_than_random,
    ),
    Rule(
        "KRT102",
        "No better than raw features",
        "note",
        "Report it with the model; more folds may detect a small difference.",
        models.no_better_than_raw,
    ),
    Rule(
        "KRT103",
        "Constant dimensions",
        "note",
        "Drop them; many of them suggest dead units or a column that is not read.",
        models.constant_dimensions,
    ),
    Rule(
        "KRT104",
        "Different items with the same vector",
        "warning",
        "Inspect the items: out of vocabulary, truncated to the same prefix, or not read at all?",
        models.same_vectors,
    ),
    Rule(
        "KRT105",
        "Low coverage",
        "warning",
        "Compare on the common questions (--on common), or set missing: penalise in the task.",
        models.low_coverage,
    ),
    Rule(
        "KRT106",
        "Vectors of very different norms",
        "note",
        "Scale the vectors to norm 1, or inspect the items with the largest norms.",
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
        "Report the mean over several seeds, or make the training more stable.",
        learning.unstable,
    ),
    Rule(
        "KRT301",
        "Saturated task",
        "note",
        "Do not choose between models by this task; use a harder one.",
        statistics.saturated,
    ),
    Rule(
        "KRT302",
        "First and second too close to call",
        "note",
        "Call it a tie, or test on more rows or folds.",
        statistics.too_few_rows,
    ),
    Rule(
        "KRT401",
        "Scores changed for an identical job",
        "error",
        "Find what is not seeded, or depends on the machine or its libraries.",
        runs.changed,
    ),
    Rule(
        "KRT402",
        "Failed jobs",
        "warning",
        "The leaderboard fills them by its missing rule; karat run … --resume --retry-failed.",
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
        "Run all models with the same seeds; different seeds make different folds.",
        runs.seeds,
    ),
    Rule(
        "KRT405",
        "Several versions of a task's data",
        "note",
        "Run all models again on one version of the data.",
        runs.other_data,
    ),
)


def check_runs(
    runs: pd.DataFrame | Run | str | Path | Iterable[Run | str | Path],
    ignore: str | Iterable[str] = (),
) -> Findings:
    """Check runs for problems with their data, models, training and statistics.

    Parameters
    ----------
    runs
        A table of scores, runs, run folders or folders of runs.
    ignore
        Codes of checks to silence, or prefixes of them: ``"KRT1"`` silences all checks of models.
        A task can silence checks with ``ignore`` in its definition.

    Returns
    -------
    Findings
        A list of findings, the most severe first, under the leaderboard's names of models and
        tasks; ``silenced`` counts the silenced ones by code.

    Raises
    ------
    DefinitionError
        If a code in ``ignore`` is unknown.

    Examples
    --------
    >>> for finding in karat.check_runs("results"):  # doctest: +SKIP
    ...     print(finding.code, finding.message)
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


def check_codes(codes: str | Iterable[str]) -> tuple[str, ...]:
    """Return codes, or prefixes of codes, in upper case; raise if no check has one.

    >>> check_codes(["krt004", "KRT3"])
    ('KRT004', 'KRT3')
    """
    upper = [code.upper() for code in ([codes] if isinstance(codes, str) else codes)]
    for code in upper:
        if len(code) <= 3 or not any(rule.code.startswith(code) for rule in RULES):
            raise _unknown(code)
    return tuple(upper)


def rule_of(code: str) -> Rule:
    """Return the rule with this code."""
    for rule in RULES:
        if rule.code == code.upper():
            return rule
    raise _unknown(code)


def _unknown(code: str) -> DefinitionError:
    hint = did_you_mean(code, [rule.code for rule in RULES])
    return DefinitionError(f'there is no check "{code}".{hint}   (karat checks --list)')


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
    """Return a Markdown table of all checks with links to their pages."""
    rows = [
        f"| [{rule.code}]({folder}/{rule.code}.md) | {rule.level} | {rule.title} |"
        for rule in RULES
    ]
    return "\n".join(["| code | level | what |", "|---|---|---|", *rows]) + "\n"
