# SPDX-License-Identifier: Apache-2.0
"""pytest --kshim: the tests under libkshim.so. Says at the end what GPU code was missing, in which file, and which tests ran
into it. Only the options and the hooks are here; nothing of the rest is imported where no option of ours is given."""
from typing import TYPE_CHECKING, Any, Generator, Optional

import pytest

if TYPE_CHECKING:
    from kshim._pytest_session import Session

SESSION = "kshim-session"  # name under which the session's part is registered


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kshim", "kshim: which GPU code is missing, and which tests run into it")
    group.addoption("--kshim", action="store_true", default=False,
                    help="run the tests under libkshim.so; implied by the other options")
    group.addoption("--kshim-simulate", action="append", default=[], metavar="ARCH",
                    help="a simulated GPU instead of the machine's own: sm_86, sm_120,driver=12.9; again for more GPUs")
    group.addoption("--kshim-target", action="append", default=[], metavar="ARCHS",
                    help="also look for code for these: sm_86,sm_120")
    group.addoption("--kshim-fail-on", choices=["error", "warning"], default=None,
                    help="the session fails when tests passed but something this severe was found")
    group.addoption("--kshim-report", default=None, metavar="DIR",
                    help="folder for the reports; else kshim-report/RUN in the working folder")


def wanted(options: Any) -> bool:
    names = ("kshim", "kshim_simulate", "kshim_target", "kshim_fail_on", "kshim_report")
    return any(getattr(options, name, None) for name in names)


# A wrapper, and the first of them: pytest's own begins to capture here, and pytest-cov to measure behind it. What has not
# begun need not be undone.
@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, None, None]:
    options = early_config.known_args_namespace
    asks_only = getattr(options, "help", False) or getattr(options, "version", False)
    if wanted(options) and not asks_only:
        from kshim import _pytest_start
        try:
            _pytest_start.start_under_shim(options)
        except _pytest_start.CannotStart as error:
            raise pytest.UsageError(f"kshim: {error}") from None
    yield


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if not wanted(config.option):
        return
    from kshim._pytest_session import Session
    config.pluginmanager.register(Session(config), SESSION)


def session_of(config: pytest.Config) -> "Optional[Session]":
    """The part that is at work, for tests and other plugins; None without --kshim."""
    return config.pluginmanager.get_plugin(SESSION)
