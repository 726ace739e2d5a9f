"""What a release needs: groups, workflows, forms, the recipe, the citation and the dates agree with each other."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from benchmarks import history

import sotdd
from sotdd.sketches import file as sketch_file
from sotdd.sketches.catalog import store

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
pytestmark = pytest.mark.skipif(not WORKFLOWS, reason="not a checkout: there is no .github folder")
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, GROUPS = SETTINGS["project"], SETTINGS["dependency-groups"]


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def opened(name):
    return yaml.safe_load(text(name))


def steps(path):
    """All steps of a workflow."""
    return [step for job in opened(path)["jobs"].values() for step in job.get("steps", [])]


def plain(command):
    """A command without the environment that it runs in."""
    return re.sub(r"^(PATH=\S+ )?(\.venv/bin/|python -m )?", "", command.strip())


# ------------------------------------------------------------------ extras and groups


def test_extras_are_for_users_and_groups_for_those_who_work_on_the_package():
    extras = PROJECT["optional-dependencies"]
    assert not {"test", "lint", "docs", "dev", "benchmark", "experiments"} & set(extras)
    assert {"test", "lint", "docs", "dev", "benchmark", "experiments"} <= set(GROUPS)
    tools = {"pytest", "ruff", "mypy", "sphinx", "hypothesis"}
    assert not [need for needs in extras.values() for need in needs if re.split(r"\W", need)[0] in tools]


def test_no_group_names_the_package_itself():
    """Without the checkout beside it, pip would look for it on the index."""
    needs = [need for group in GROUPS.values() for need in group if isinstance(need, str)]
    assert not [need for need in needs if need.startswith("sotdd")]


def test_torch_is_pinned_once():
    assert re.findall(r'"torch==[^"]*"', text("pyproject.toml")) == [f'"{GROUPS["torch"][0]}"']
    assert GROUPS["torch"][0] in text(".ci/package")


# ------------------------------------------------------------------ workflows


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_commit_and_may_do_little(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    for line in path.read_text(encoding="utf-8").splitlines():
        if "uses: " in line and "uses: ./" not in line:
            assert re.search(r"uses: [\w./-]+@[0-9a-f]{40} # v[\d.]+$", line), line
    for step in steps(path):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_one_action_is_pinned_to_one_commit():
    pins = {pin.rpartition("@")[::2] for path in WORKFLOWS for pin in re.findall(r"uses: ([\w./-]+@\w+)", text(path))}
    assert len({re.sub(r"/(init|analyze)$", "", name) for name, _ in pins}) == len({commit for _, commit in pins})


def test_the_workflow_tests_the_pythons_that_are_named():
    matrix = opened(".github/workflows/tests.yml")["jobs"]["tests"]["strategy"]["matrix"]
    named = re.findall(r"Python :: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), re.MULTILINE)
    assert matrix["python"] == named
    assert PROJECT["requires-python"] == f">={named[0]}"
    assert {name.partition("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}


@pytest.mark.parametrize("name", ["tests", "docs"])
def test_workflows_run_what_the_pages_and_ci_run(name):
    """One way to install, test, lint and build; elsewhere only what makes the environment."""
    known = " && ".join([text("README.md"), text("CONTRIBUTING.md"), text(".ci/run")])
    known = {plain(part) for line in known.splitlines() for part in re.split(r"&&|`|#", line)}
    own = {"pip install build hatchling", ".ci/package python"}
    ran = {plain(line) for step in steps(f".github/workflows/{name}.yml") for line in step.get("run", "").splitlines()}
    assert ran
    assert ran <= known | own, ran - known - own


def test_publishing_needs_the_tests_and_has_no_password():
    jobs = opened(".github/workflows/release.yml")["jobs"]
    publish = jobs["publish"]
    assert set(publish["needs"]) == {"tests", "agree"}
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["environment"]["name"] == "pypi"
    assert publish["steps"][-1]["with"] == {"attestations": True}
    assert "secrets." not in text(".github/workflows/release.yml")
    built = next(step for step in steps(".github/workflows/tests.yml") if "upload-artifact" in step.get("uses", ""))
    assert publish["steps"][0]["with"]["name"] == built["with"]["name"]


def test_forms_ask_for_something():
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        if path.stem != "config":
            assert {"name", "description", "body"} <= set(form)
            assert any(field.get("validations", {}).get("required") for field in form["body"])
    kinds = {update["package-ecosystem"] for update in opened(".github/dependabot.yml")["updates"]}
    assert kinds == {"github-actions", "pip"}


@pytest.mark.parametrize("command", [["zizmor", "--offline", ".github"], ["sp-repo-review", "."]], ids=lambda c: c[0])
def test_checkers_of_conventions_find_nothing(command):
    program = shutil.which(command[0], path=str(Path(sys.executable).parent)) or shutil.which(command[0])
    if program is None:
        pytest.skip(f"needs {command[0]}: pip install --group lint")
    done = subprocess.run([program, *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# ------------------------------------------------------------------ the recipe, the citation, the date


def test_the_recipe_asks_for_what_the_package_asks_for():
    recipe = opened("recipe/recipe.yaml")
    needs = {need.replace(">=", " >=") for need in PROJECT["dependencies"]}
    assert set(recipe["requirements"]["run"]) == needs | {"python >=${{ python_min }}"}
    optional = {need for needs in PROJECT["optional-dependencies"].values() for need in needs if "sotdd" not in need}
    renamed = {"matplotlib": "matplotlib-base", "torch": "pytorch"}
    known = set()
    for need in optional:
        name, bound = re.fullmatch(r"([\w-]+)(?:\[.*\])?(>=.*)", need).groups()
        known.add(f"{renamed.get(name, name)} {bound}")
    assert set(recipe["requirements"]["run_constraints"]) <= known
    assert {"lancedb", "pytorch", "pyarrow"} <= {need.split()[0] for need in recipe["requirements"]["run_constraints"]}
    assert f">={recipe['context']['python_min']}" == PROJECT["requires-python"]
    assert recipe["context"]["version"] == sotdd.__version__
    assert recipe["build"]["python"]["entry_points"] == [f"{k} = {v}" for k, v in PROJECT["scripts"].items()]
    assert set(recipe["about"]["license_file"]) == set(PROJECT["license-files"])
    assert recipe["about"]["summary"] == PROJECT["description"]


def test_there_is_one_address():
    source = PROJECT["urls"]["Source"]
    citation, recipe = opened("CITATION.cff"), opened("recipe/recipe.yaml")
    assert {citation["repository-code"], recipe["about"]["repository"]} == {source}
    assert {citation["url"], recipe["about"]["homepage"], PROJECT["urls"]["Documentation"]} == {citation["url"]}
    assert source.removeprefix("https://") in text("docs/releasing.md")
    links = opened(".github/ISSUE_TEMPLATE/config.yml")["contact_links"]
    assert [link["url"] for link in links] == [f"{source}/security/advisories/new", citation["url"]]


def test_the_citation_has_version_date_and_paper():
    citation = opened("CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == sotdd.__version__
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", str(citation["date-released"]))
    assert "Sliced Optimal Transport" in citation["references"][0]["title"]


@pytest.fixture
def agree(tmp_path):
    """The check of a tag, over copies of the files that it reads."""
    found = runpy.run_path(str(ROOT / ".ci" / "agree"))["disagreements"]
    for name in ("src/sotdd/basics/version.py", "CHANGELOG.md", "CITATION.cff"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    found.__globals__["ROOT"] = tmp_path
    return tmp_path, found


def test_a_tag_is_published_only_if_everything_says_the_same(agree):
    folder, disagreements = agree
    tag = f"v{sotdd.__version__}"
    changes, citation = folder / "CHANGELOG.md", folder / "CITATION.cff"
    said = changes.read_text(encoding="utf-8")
    heading = rf"^## {re.escape(sotdd.__version__)} \(.*\)$"
    assert re.search(heading, said, re.MULTILINE)
    changes.write_text(re.sub(heading, f"## {sotdd.__version__} (2031-02-03)", said, flags=re.MULTILINE), "utf-8")
    (late,) = disagreements(tag)
    assert "write one date" in late
    dated = re.sub(r"^date-released: .*$", "date-released: 2031-02-03", citation.read_text("utf-8"), flags=re.MULTILINE)
    citation.write_text(dated, "utf-8")
    assert disagreements(tag) == []
    assert len(disagreements("v99.0")) == 3
    changes.write_text(said.replace(f"## {sotdd.__version__}", "## 0.0.9"), "utf-8")
    (missing,) = disagreements(tag)
    assert "YYYY-MM-DD" in missing


@pytest.mark.skipif(sys.platform == "win32", reason="a program as POSIX has them")
@pytest.mark.parametrize(("score", "code"), [("99.9", 0), ("97.9", 1), (None, 1)])
def test_the_share_of_types_has_a_limit(score, code, tmp_path):
    """Whatever the exit code of the checker, which is 1 below 100 %; a program in its place says the score."""
    said = "no such package" if score is None else f"Type completeness score: {score}%"
    checker = tmp_path / "basedpyright"
    checker.write_text(f"#!/bin/sh\necho '{said}'\nexit 1\n", encoding="utf-8")
    checker.chmod(0o755)
    found = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run([sys.executable, ROOT / ".ci" / "typed"], capture_output=True, env=found, check=False)
    assert done.returncode == code


def test_the_policy_names_the_versions_that_are_written():
    page = text("docs/stability.md")
    row = {
        line.split("|")[1].strip(): line.split("|")[3].strip() for line in page.splitlines() if line.startswith("| ")
    }
    shared = str(sketch_file.VERSION)
    assert {row[kind] for kind in ("sketch", "class statistics", "builder", "window")} == {shared}
    assert row["private statistics and counts"] == shared
    assert row["catalog"] == str(store._VERSION)


# ------------------------------------------------------------------ benchmarks over time


def test_the_page_of_benchmarks_is_made_of_their_history():
    assert history.PAGE.read_text(encoding="utf-8") == history.page(history.read())


def test_runs_are_added_to_the_history(tmp_path):
    from benchmarks.core import Line

    kept = tmp_path / "history.jsonl"
    for number, measured in enumerate(("0.5 × (1 s against 2 s)", "3.0 ×")):
        history.Run.of([Line("one / other", measured, "≤ 2.0 ×", number == 0)], "a machine").append(kept)
    first, second = history.read(kept)
    assert (first.version, first.machine) == (sotdd.__version__, "a machine")
    assert history.share_of_promise(*second.measured["one / other"][:2]) == 1.5
    assert history.share_of_promise("8.0 ×", "≥ 4 ×") == 0.5
    assert history.share_of_promise("2 s", "≤ 4 s") is None
    assert "| one / other | ≤ 2.0 × | 0.5 × | **3.0 ×** |" in history.page([first, second])
