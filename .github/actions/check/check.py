"""Runs ashlar check in a workflow: a table in the job's summary, and in a comment.

Inputs are the variables CHECK_* of action.yml. It needs Python 3.9 and no packages.
"""

import json
import os
import shlex
import subprocess
import sys
import urllib.request

MARK = "<!-- ashlar check -->"


def main():
    get = os.environ.get
    if get("CHECK_INSTALL"):
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *shlex.split(get("CHECK_INSTALL"))], check=True)
    files = (get("CHECK_FILE") or "").split("\n")
    files = [f.strip() for f in files if f.strip()]
    worst, tables = (0, []) if files else (2, ["No file is given: set `file`.\n"])
    for file in files:
        status, table = check(file)
        worst = max(worst, status)
        tables.append(table)
    body = "### ashlar check\n\n" + "\n".join(tables)
    print(body)
    append("GITHUB_STEP_SUMMARY", body)
    append("GITHUB_OUTPUT", "passed=" + ("true" if worst == 0 else "false") + "\n")
    if get("CHECK_TOKEN") and get("CHECK_PULL_REQUEST"):
        try:
            comment(body)
        except (OSError, ValueError) as e:  # of a fork, whose token may not write
            print(f"::warning::ashlar check: the comment could not be written: {e}")
    return worst


def check(file):
    """Checks one file: the exit status, and a table or what is wrong."""
    rules = os.environ.get("CHECK_RULES", "")
    try:
        argv = ["ashlar", "check", "--markdown", *shlex.split(rules)]
    except ValueError as e:
        return 2, f"`rules` cannot be read ({e}): {rules}\n"
    for flag, name in (("--baseline", "CHECK_BASELINE"), ("--max-growth", "CHECK_MAX_GROWTH")):
        if os.environ.get(name):
            argv.append(f"{flag}={os.environ[name]}")
    try:
        done = subprocess.run([*argv, "--", file], capture_output=True, text=True)
    except FileNotFoundError:
        return 2, "There is no command `ashlar`: leave `install` as it is, or install it in a step before.\n"
    table = done.stdout
    if done.stderr:
        sys.stderr.write(done.stderr)
        table += "\n```\n" + done.stderr.replace("```", "'''") + "```\n"
    return done.returncode, table


def append(variable, text):
    """Adds to the file that a variable of the runner names."""
    if os.environ.get(variable):
        with open(os.environ[variable], "a", encoding="utf-8") as f:
            f.write(text)


def comment(body):
    """Writes the comment, or writes anew the one that is there."""
    api = os.environ.get("GITHUB_API_URL", "https://api.github.com")
    repository = f"{api}/repos/{os.environ['GITHUB_REPOSITORY']}"
    thread = f"{repository}/issues/{int(os.environ['CHECK_PULL_REQUEST'])}/comments"
    text = {"body": MARK + "\n" + body}
    page = 1
    while True:
        comments = call("GET", f"{thread}?per_page=100&page={page}")
        for c in comments:
            if MARK in (c.get("body") or ""):
                return call("PATCH", f"{repository}/issues/comments/{int(c['id'])}", text)
        if len(comments) < 100:
            return call("POST", thread, text)
        page += 1


def call(method, url, data=None):
    request = urllib.request.Request(url, method=method, data=json.dumps(data).encode() if data else None, headers={
        "Authorization": "Bearer " + os.environ["CHECK_TOKEN"],
        "Accept": "application/vnd.github+json",
        "Content-Type": "application/json",
    })
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


if __name__ == "__main__":
    sys.exit(main())
