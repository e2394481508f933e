#!/usr/bin/env python3
"""Programs behave with libraries preloaded as without: what they answer to --version, and how they end.

    preloaded_programs.py LIBRARY[:LIBRARY...] [PROGRAM...]

Without programs: every one of /usr/bin. One that does not answer --version twice in the same way is left out. Programs
run in an empty folder, as nobody where this is run by root, and for ten seconds at most.
"""
import concurrent.futures
import os
import shutil
import signal
import subprocess
import sys
import tempfile

NOBODY = 65534
SECONDS = 10


def answer(program, folder, preload):
    """Exit status and lines of output, in no order: several processes may write them. None: it does not end."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": folder, "LC_ALL": "C"}
    if preload:
        environment["LD_PRELOAD"] = preload
        environment["LD_LIBRARY_PATH"] = os.path.dirname(preload.split(":")[0])
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    with tempfile.TemporaryFile() as output:
        try:
            run = subprocess.Popen([program, "--version"], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.STDOUT, start_new_session=True, **user)
        except OSError:
            return None
        try:
            status = run.wait(SECONDS)
        except subprocess.TimeoutExpired:
            status = None
        try:
            os.killpg(run.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        run.wait()
        if status is None:
            return None
        output.seek(0)
        return status, sorted(output.read(1 << 20).splitlines())


def compare(program, folder, preload):
    """"same", "different" or "left out", and what is said of it."""
    plain = answer(program, folder, "")
    if plain is None or plain[0] != 0 or plain != answer(program, folder, ""):
        return "left out", ""
    loaded = answer(program, folder, preload)
    if loaded == plain:
        return "same", ""
    said = "does not end" if loaded is None else f"status {loaded[0]}, {loaded[1][:5]!r}"
    return "different", f"{program}: {said}; without: {plain[1][:5]!r}"


def main():
    programs = sys.argv[2:]
    if not programs:
        programs = sorted(entry.path for entry in os.scandir("/usr/bin") if os.access(entry.path, os.X_OK))
    counts = {"same": 0, "different": 0, "left out": 0}
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        work = os.path.join(folder, "work")
        os.mkdir(work)
        os.chmod(work, 0o777)
        libraries = []
        for library in sys.argv[1].split(":"):
            libraries.append(shutil.copy(library, folder))
            os.chmod(libraries[-1], 0o755)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for kind, said in pool.map(lambda program: compare(program, work, ":".join(libraries)), programs):
                counts[kind] += 1
                if said:
                    print(said)
    print(f"{counts['same']} programs behave the same, {counts['different']} do not, "
          f"{counts['left out']} do not answer")
    if counts["different"] == 0 and counts["same"] >= min(5, len(programs)):
        print("all the same")


main()
