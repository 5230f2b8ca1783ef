# SPDX-License-Identifier: Apache-2.0
"""pytest --kshim, once the shim is there: keeps the journal of the tests, in every worker, and at the end, in the process that
the user started, says what was found."""
import os
from typing import Any, Generator, Optional

import pytest

from kshim import _pytest_journal, _pytest_start
from kshim._pytest_attribution import Run
from kshim._pytest_summary import Summary, summarize


class Session:
    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.is_worker = hasattr(config, "workerinput")
        self.run_id: Optional[str] = os.environ.get("KSHIM_RUN_ID")
        self.folder = _pytest_journal.report_folder()
        self.blind = self._why_blind()
        self.journal = None
        if self.blind is None and self.folder is not None:
            self.journal = _pytest_journal.Journal(self.folder, self.run_id)
        self.summary: Optional[Summary] = None
        self.failed = False

    def _why_blind(self) -> Optional[str]:
        if not _pytest_start.shim_is_mapped():
            return "libkshim.so did not come to life in this process; `kshim doctor` says what keeps it out"
        if os.environ.get("KSHIM_DISABLE", "").strip() == "1":
            return "KSHIM_DISABLE=1 keeps it from recording anything"
        if self.folder is None:
            return "KSHIM_REPORT names no folder of reports; start pytest without it"
        return None

    # Where the tests are

    def _mark(self, test: Optional[str], when: Optional[str] = None) -> None:
        if self.journal is not None:
            self.journal.mark(test, when)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, None, None]:
        # A folder or the session collects others inside of it, and is nobody's test.
        is_file = isinstance(collector, pytest.File)
        if is_file:
            self._mark(f"{collector.nodeid} (import)")
        yield
        if is_file:
            self._mark(None)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, None, None]:
        self._mark(item.nodeid, "setup")
        yield
        self._mark(None)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, None, None]:
        self._mark(item.nodeid, "setup")
        yield

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        self._mark(item.nodeid, "call")
        yield

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, None, None]:
        self._mark(item.nodeid, "teardown")
        yield

    # What came of it

    # The last of the plain ones: xdist has ended its workers, and pytest's own summary, a wrapper, is still to come.
    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.is_worker:
            return
        fail_on = self.config.option.kshim_fail_on
        if self.blind is not None or self.folder is None:
            self.summary = Summary([], f"kshim: nothing was recorded: {self.blind}", None, True)
        else:
            run = Run(self.folder, self.run_id)
            self.summary = summarize(run, self.config.option.kshim_target, self.folder)
            if not run.reports:
                self._leave_no_trace(run)
        too_severe = ("error",) if fail_on == "error" else ("error", "warning")
        # A gate that could not look must not pass.
        self.failed = fail_on is not None and (self.summary.broken or self.summary.worst in too_severe)
        if self.failed and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _leave_no_trace(self, run: Run) -> None:
        for path in run.journal_files:
            try:
                os.unlink(path)
            except OSError:
                pass
        folder = self.folder
        for _ in range(2):  # kshim-report/RUN
            try:
                if folder is not None:
                    os.rmdir(folder)  # fails where there is something in it
            except OSError:
                return
            folder = os.path.dirname(folder or "")
            if os.path.basename(folder) != "kshim-report":
                return

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.summary is None:
            return
        if self.summary.lines:
            terminalreporter.section("kshim", "=")
            for line in self.summary.lines:
                heading = line.startswith(("error: ", "warning: "))
                terminalreporter.write_line(line, **({"red" if line[0] == "e" else "yellow": True} if heading else {}))
            terminalreporter.write_line("")
        terminalreporter.write_line(self.summary.last)
        if self.failed:
            terminalreporter.write_line(f"kshim: the session fails: --kshim-fail-on {self.config.option.kshim_fail_on}",
                                        red=True)
