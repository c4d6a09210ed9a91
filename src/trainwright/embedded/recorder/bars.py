"""What the progress bars of common libraries say. Pure.

In: a rank's output, piece by piece. Out: `Seen`, how far the training is by the last bar or line that said so:

    tqdm            train:  45%|████▌     | 18/40 [00:08<00:10, 2.1it/s, loss=0.5]
    HF Trainer      the same, and {'loss': '0.69', 'learning_rate': '4e-05', 'epoch': '0.5'}
    Lightning       Epoch 2:  45%|…| 18/40 [00:08<00:10, 2.1it/s, train_loss=0.05]
    Keras           Epoch 1/3, then 3/9 ━━━━━━━━━━━━━━━━━━━━ 0s 59ms/step - loss: 1.94 - mae: 1.32

Bars about something else than training (validation, downloads) and bars inside of another are left out. A percentage is
that of the whole training: where only the epoch's number is known and not how many there are, there is none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

LONGEST_LINE = 1024
"""Longer lines are no bars, and would take long to be found so."""

MOST_METRICS = 20

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_MARK = re.compile(r"^\[[A-Za-z_][\w.-]*?0\]:")
"""torchrun's mark of the first rank of a node."""
_OTHER_RANK = re.compile(r"^\[[A-Za-z_][\w.-]*?[1-9]\d*\]:")
_CURSOR_UP = "\x1b[A"
"""By which tqdm comes back from a bar inside of another."""

_COUNT = r"[\d.]+[kMGT]?"
_TQDM = re.compile(
    rf"^(?P<what>[^|]*?):?\s*(?P<percent>\d{{1,3}})%\|[^|]*\|\s*(?P<step>{_COUNT})/(?P<total>{_COUNT})"
    r"\s*\[(?P<elapsed>[\d:]+)<(?P<left>[\d:]+|\?)(?:, *(?P<rest>[^\]]*))?\]"
)
_KERAS = re.compile(
    r"^\s*(?P<step>\d+)/(?P<total>\d+) (?:[━─=>.\[\] ]+|- )(?:- )?.*?"
    r"(?:(?P<speed>\d+(?:\.\d+)?)(?P<unit>us|ms|s)/(?:step|epoch))?"
    r"(?P<metrics>(?: - \w+: [-+\d.e]+)*)\s*$"
)
_KERAS_METRIC = re.compile(r" - (\w+): ([-+\d.e]+|nan|inf)")
_EPOCH_OF = re.compile(r"\bepoch:?\s*(\d+)\s*/\s*(\d+)", re.IGNORECASE)
_EPOCH = re.compile(r"\bepoch:?\s*(\d+)\b", re.IGNORECASE)
_ASIDE = re.compile(
    r"^\W*(val|eval|test|predict|sanity|download|upload|fetch|load|sav|map\b|filter|tokeniz|generat|resolv|casting|"
    r"flatten|creating|writing|shuffl|preprocess)",
    re.IGNORECASE,
)
_PAIR = re.compile(r"\b([A-Za-z_][\w/.-]*)=([-+]?(?:\d[\d.]*(?:e[-+]?\d+)?|nan|inf))\b", re.IGNORECASE)
_DICTIONARY = re.compile(r"^\s*\{'\w+': .*'epoch': .*\}\s*$")
_ENTRY = re.compile(r"'(\w+)': '?([-+]?(?:\d[\d.]*(?:e[-+]?\d+)?|nan|inf))'?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


@dataclass(frozen=True)
class Seen:
    percent: int | None = None
    remaining_seconds: int | None = None
    step: int | None = None
    total: int | None = None
    metrics: dict[str, str] = field(default_factory=dict)

    def after(self, before: Seen | None, metrics: dict[str, str]) -> Seen:
        """This, with the metrics that were said before and those that are said now."""
        all_of_them = {**(before.metrics if before else {}), **metrics}
        return replace(self, metrics=dict(list(all_of_them.items())[-MOST_METRICS:]))


class Bars:
    """Reads the output of one rank. `seen` is None until something in it was understood."""

    def __init__(self) -> None:
        self.seen: Seen | None = None
        self._rest = ""
        self._epoch: tuple[int, int] | None = None
        """Keras announces the epoch on a line of its own: which one, of how many."""

    def read(self, text: str) -> None:
        """Takes the next piece of output. A bar that is not yet followed by another is read too."""
        *whole, self._rest = re.split(r"[\r\n]", self._rest + text)
        self._rest = self._rest[-LONGEST_LINE - 1 :]  # one more than a bar may have
        for line in whole:
            self._take(line)
        self._take_unfinished(self._rest)

    def _take_unfinished(self, line: str) -> None:
        """Takes the last state of a bar before the next one ends it. Only one that is surely whole and the same bar:
        a bar inside of another shows by its end that it is one.
        """
        bar = _TQDM.match(_ESCAPES.sub("", line)) if line.endswith("]") and len(line) <= LONGEST_LINE else None
        if bar and (self.seen is None or int(_count(bar["total"])) == self.seen.total):
            self._take(line)

    def _take(self, line: str) -> None:
        if not line or len(line) > LONGEST_LINE or line.endswith(_CURSOR_UP) or _OTHER_RANK.match(line):
            return
        line = _MARK.sub("", _ESCAPES.sub("", line), count=1)
        if "%|" in line:
            self._take_tqdm(line)
        elif _DICTIONARY.match(line):
            self._add(dict(_ENTRY.findall(line)))
        elif line.startswith("Epoch ") and (epoch := _EPOCH_OF.fullmatch(line.strip())):
            self._epoch = int(epoch[1]), int(epoch[2])
        elif "/" in line[:16] and (bar := _KERAS.match(line)) and (self._epoch or bar["speed"]):
            self._take_keras(bar)

    def _add(self, metrics: dict[str, str]) -> None:
        self.seen = (self.seen or Seen()).after(self.seen, metrics)

    def _take_tqdm(self, line: str) -> None:
        bar = _TQDM.match(line)
        if bar is None or _ASIDE.match(bar["what"]):
            return
        step, total = _count(bar["step"]), _count(bar["total"])
        left = _seconds(bar["left"])
        percent: int | None = int(bar["percent"])
        metrics = dict(_PAIR.findall(bar["rest"] or ""))
        if epoch := _EPOCH_OF.search(bar["what"]):
            percent, left = _of_all(int(epoch[1]), int(epoch[2]), step, total), None
            metrics["epoch"] = epoch[1]
        elif epoch := _EPOCH.search(bar["what"]):
            percent, left = None, None
            metrics["epoch"] = epoch[1]
        self.seen = Seen(percent, left, int(step), int(total)).after(self.seen, metrics)

    def _take_keras(self, bar: re.Match[str]) -> None:
        step, total = int(bar["step"]), int(bar["total"])
        if not total > 0 or step > total:
            return
        epoch, epochs = self._epoch or (1, 1)
        left = None
        if bar["speed"]:
            steps = total - step + max(0, epochs - epoch) * total
            left = int(steps * float(bar["speed"]) * _SECONDS[bar["unit"]])
        metrics = dict(_KERAS_METRIC.findall(bar["metrics"]))
        if self._epoch:
            metrics["epoch"] = str(epoch)
        self.seen = Seen(_of_all(epoch, epochs, step, total), left, step, total).after(self.seen, metrics)


def _of_all(epoch: int, epochs: int, step: float, total: float) -> int | None:
    """The percentage of the whole training in this epoch, counted from 1."""
    if not 0 < epoch <= epochs or total <= 0:
        return None
    return int(100 * (epoch - 1 + min(1.0, step / total)) / epochs)


def _count(text: str) -> float:
    unit = text[-1] if text[-1] in _UNITS else ""
    digits = text.removesuffix(unit)
    return float(digits) * _UNITS[unit] if digits.count(".") < 2 and digits.strip(".") else 0.0


def _seconds(text: str) -> int | None:
    """`1:02:03` or `02:03` in seconds; tqdm writes `?` while it does not know."""
    seconds = 0
    for part in text.split(":"):
        if not part.isdecimal():
            return None
        seconds = seconds * 60 + int(part)
    return min(seconds, 2**31 - 1)
