"""What first users and a real cluster taught us, by number: what the user wanted, and the tests that hold it.

FU… are findings of first users, C… of a cluster with everything in it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
WANTED: dict[str, tuple[str, dict[str, tuple[str, ...]]]] = {
    "FU3": (
        "I want to read on my own screen why the node refused my pod",
        {
            "embedded/test_reasons.py": ("test_i_see_why_the_node_refuses_my_pod",),
            "unit/cli/files/test_validate_local.py": ("test_what_the_node_does_not_support_is_said_in_its_words",),
        },
    ),
    "FU4": (
        "I want to know before I wait which runtimes run on this machine, and no silence while I wait",
        {
            "embedded/test_manners.py": ("test_runtimes_say_whether_they_run_on_this_machine",),
            "unit/cli/files/test_validate_local.py": ("test_a_job_that_asks_for_more_than_there_is_says_so",),
            "training/test_frameworks.py": (),
        },
    ),
    "FU12": (
        "I want the cause of a failure in one line: rank, error and what to do, not torchrun's table",
        {
            "embedded/test_reasons.py": (
                "test_i_see_which_rank_raised_and_where",
                "test_i_see_which_file_is_missing",
                "test_i_see_that_a_kill_means_memory",
            ),
            "unit/pipeline/reasons/test_logs.py": ("test_the_cause_is_found_in_the_output",),
        },
    ),
    "FU15": (
        "I want to know that my job hangs, which rank, and in which line",
        {"embedded/test_reasons.py": ("test_i_see_that_it_hangs_and_where",)},
    ),
    "FU19": (
        "I want to type what I would type with kubectl, and be told what I meant",
        {
            "embedded/test_manners.py": (
                "test_one_trainjob_is_shown_by_its_name_alone_or_with_its_kind",
                "test_objects_come_as_programs_want_them",
                "test_labels_and_namespaces_select",
                "test_a_typo_is_told_what_was_meant",
                "test_every_change_of_a_watched_trainjob_is_a_line",
                "test_several_are_suspended_resumed_and_deleted_at_once",
                "test_run_says_what_was_meant_in_a_file",
            ),
            "embedded/test_logs.py": (),
            "unit/cli/test_grammar.py": (
                "test_a_mistake_is_one_line_with_what_was_meant",
                "test_a_file_is_given_as_a_word_or_with_f",
            ),
            "unit/cli/test_no_traceback.py": (),
        },
    ),
    "FU20": (
        "I want a page for what I came for, with lines that work as they stand there",
        {
            "docs/test_command_lines.py": ("test_a_line_does_what_it_says",),
            "docs/test_references.py": ("test_a_reference_is_current",),
            "examples/test_examples.py": ("test_an_example_prints_what_it_promises",),
            "unit/cli/test_portability.py": (),
            "docs/test_findings.py": ("test_an_ml_engineer_finds_a_page_for_each_question",),
        },
    ),
    "C5": (
        "I want to read in the job's status why no node takes its pods: CPU, volume, Volcano's queue",
        {
            "kube/test_operator_reasons.py": (
                "test_too_little_cpu_in_the_schedulers_words",
                "test_a_claim_that_is_missing_then_unbound",
                "test_a_gang_that_volcano_holds_back",
            ),
        },
    ),
}
"""By number: the wish, and the tests by file; a file without names is about it as a whole."""


@pytest.mark.parametrize("number", WANTED)
def test_a_finding_has_its_tests(number: str) -> None:
    _, files = WANTED[number]
    for file, names in files.items():
        text = (TESTS / file).read_text()
        assert "def test_" in text, file
        missing = [name for name in names if re.search(rf"^(?:async )?def {name}\b", text, re.MULTILINE) is None]
        assert missing == [], f"{file}: write here where they went"


QUESTIONS = {
    "code and data": ("run.md", r"(?i)working directory"),
    "environment": ("run.md", r"(?i)virtual ?env"),
    "outputs": ("run.md", r"TRAINWRIGHT_OUTPUT"),
    "GPUs": ("run.md", r"--gpus"),
    "checkpoints and resume": ("run.md", r"(?i)checkpoint"),
    "debugging a hang": ("guide.md", r"(?i)hang"),
    "from laptop to cluster": ("guide.md", r"--context"),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_ml_engineer_finds_a_page_for_each_question(question: str) -> None:
    page, words = QUESTIONS[question]
    docs = TESTS.parent / "docs"
    assert re.search(words, (docs / page).read_text())
    assert f"]({page}" in (docs / "index.md").read_text(), "the first page leads there"
