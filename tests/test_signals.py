"""Ctrl-C and a polite end, whatever is being computed when they come."""

import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from scipy.sparse import csr_array

from fedstruct.graph import npz
from fedstruct.graph.generate import planted
from fedstruct.structure.prune import pruned_product


def test_a_signal_within_a_compiled_loop_is_ctrl_c():
    """Python looks for signals when the loop is done, and numba gives back what it computed all the same."""
    dense, whole = csr_array(np.ones((300, 300))), np.array([0, 300])

    def multiplied(times):
        for _ in range(times):
            pruned_product(dense, dense, whole, whole, np.array([9]))

    multiplied(1)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for _ in range(5):
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            with pytest.raises(KeyboardInterrupt):
                multiplied(100_000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_exchange_ends_a_run_in_a_sentence(number, here):
    npz.write(planted(nodes=600, degree=20, seed=0), here / "dense.npz")
    typing = ("dense.npz", "--seeds", 100_000, "--set", "rounds=1", "--set", "layers_structure=30", "--out", "run")
    command = [sys.executable, "-m", "fedstruct", "run", *map(str, typing)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        watchdog = threading.Timer(300, process.kill)
        watchdog.start()
        while not (here / "run" / "result.json").exists() and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(number)
        out, err = process.communicate()
        watchdog.cancel()
    assert (process.returncode, out) == (130, ""), err
    assert "Traceback" not in err
    assert "of 100000 runs are in run" in " ".join(err.split())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_command_is_imported_is_a_sentence(number):
    typed = f"""
import os, sys
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            os.kill(os.getpid(), {int(number)})
sys.meta_path.insert(0, Slow())
sys.argv = ["fedstruct", "run", "planted:nodes=300", "--seeds", "100000"]
from fedstruct.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", typed], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "fedstruct: stopped\n")
