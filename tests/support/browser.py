# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, asked over its debugging pipe: a page is opened, an expression is evaluated in it, its value comes back as JSON.
(`--dump-dom` with a virtual clock sometimes never ends and keeps a core busy.)"""
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--no-first-run", "--disable-background-networking",
           "--disable-component-update", "--disable-extensions", "--disable-sync", "--mute-audio")


class Ended(Exception):
    """Chromium ended or did not answer in time."""


class Browser:
    def __init__(self, seconds=120):
        self.seconds, self.count, self.waiting = seconds, 0, b""

    def __enter__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        ends = [*os.pipe(), *os.pipe()]
        high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 20) for end in ends]
        for end in ends:
            os.close(end)
        theirs_in, self.out, self.answers, theirs_out = high

        def three_and_four():
            os.dup2(theirs_in, 3)
            os.dup2(theirs_out, 4)

        self.process = subprocess.Popen([PROGRAM, *OPTIONS, f"--user-data-dir={self.profile.name}", "--remote-debugging-pipe", "about:blank"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False,
                                        preexec_fn=three_and_four, start_new_session=True)
        os.close(theirs_in)
        os.close(theirs_out)
        return self

    def __exit__(self, *_):
        with contextlib.suppress(Ended, OSError, subprocess.TimeoutExpired):
            self.ask("Browser.close")
            self.process.wait(10)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.out)
        os.close(self.answers)
        self.profile.cleanup()

    def _message(self, end):
        """The next message of Chromium."""
        while b"\0" not in self.waiting:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.answers], [], [], left)[0]:
                raise Ended(f"Chromium did not answer in {self.seconds} s")
            read = os.read(self.answers, 1 << 20)
            if not read:
                raise Ended("Chromium ended")
            self.waiting += read
        first, _, self.waiting = self.waiting.partition(b"\0")
        return json.loads(first)

    def ask(self, method, session=None, until=None, **parameters):
        """Chromium's answer to one call; `until` names an event that must have come as well."""
        self.count += 1
        call = {"id": self.count, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        os.write(self.out, json.dumps(call).encode() + b"\0")
        answer, end = None, time.monotonic() + self.seconds
        while answer is None or until:
            message = self._message(end)
            if message.get("id") == self.count:
                if "error" in message:
                    raise Ended(f"{method}: {message['error']}")
                answer = message["result"]
            elif message.get("method") == until:
                until = None
        return answer

    def value(self, page, expression):
        """What the (asynchronous) JavaScript expression gives in that page, once it is loaded; nothing is kept from page to page."""
        context = self.ask("Target.createBrowserContext")["browserContextId"]
        target = self.ask("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.ask("Page.enable", session)
        self.ask("Page.navigate", session, until="Page.loadEventFired", url=page)
        answer = self.ask("Runtime.evaluate", session, expression=expression, awaitPromise=True, returnByValue=True)
        self.ask("Target.disposeBrowserContext", browserContextId=context)
        if "exceptionDetails" in answer:
            raise Ended(f"{page}: {answer['exceptionDetails']}")
        return answer["result"].get("value")
