"""Kubernetes' rules for names: labels, qualified keys and DNS names.

Each `…_faults` function takes a string and returns its faults in Kubernetes' words, none for a good name. Lengths count
bytes.
"""

from __future__ import annotations

import re

_LABEL_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_DNS1123_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS1123_SUBDOMAIN = _DNS1123_LABEL + "(\\." + _DNS1123_LABEL + ")*"
_DNS1035_LABEL = "[a-z]([-a-z0-9]*[a-z0-9])?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"

_label_key = re.compile(_LABEL_KEY, re.ASCII).fullmatch
_label_value = re.compile(f"({_LABEL_KEY})?", re.ASCII).fullmatch
_dns1123_label = re.compile(_DNS1123_LABEL).fullmatch
_dns1123_subdomain = re.compile(_DNS1123_SUBDOMAIN).fullmatch
_dns1035_label = re.compile(_DNS1035_LABEL).fullmatch
_config_key = re.compile(_CONFIG_KEY).fullmatch

LABEL_KEY_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_LABEL_KEY}')"
)
LABEL_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', "
    f"regex used for validation is '({_LABEL_KEY})?')"
)
DNS1123_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    f"an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_DNS1123_LABEL}')"
)
DNS1123_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_DNS1123_SUBDOMAIN}')"
)
DNS1035_LABEL_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    f"and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    f"regex used for validation is '{_DNS1035_LABEL}')"
)
CONFIG_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
    f"(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '{_CONFIG_KEY}')"
)


def max_length_fault(limit: int) -> str:
    return f"must be no more than {limit} bytes"


def _too_long(text: str, limit: int) -> list[str]:
    return [max_length_fault(limit)] if len(text.encode()) > limit else []


def _name_too_long(text: str, limit: int) -> list[str]:
    """For names the message says characters where it says bytes for labels, as in Kubernetes."""
    return [f"must be no more than {limit} characters"] if len(text.encode()) > limit else []


def label_key_faults(key: str) -> list[str]:
    """Faults of a label key, annotation key or other qualified name: an optional DNS prefix, a slash, a name."""
    faults: list[str] = []
    prefix, slash, name = key.partition("/")
    if "/" in name:
        return [
            f"a valid label key {LABEL_KEY_RULE} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')"
        ]
    if not slash:
        name = key
    elif not prefix:
        faults.append("prefix part must be non-empty")
    else:
        rules = _too_long(prefix, 253) + ([] if _dns1123_subdomain(prefix) else [DNS1123_SUBDOMAIN_RULE])
        faults += [f"prefix part {fault}" for fault in rules]
    if not name:
        faults.append("name part must be non-empty")
    else:
        faults += [f"name part {fault}" for fault in _too_long(name, 63)]
    if not _label_key(name):
        faults.append(f"name part {LABEL_KEY_RULE}")
    return faults


def label_value_faults(value: str) -> list[str]:
    return _too_long(value, 63) + ([] if _label_value(value) else [LABEL_VALUE_RULE])


def dns1123_label_faults(name: str) -> list[str]:
    faults = _name_too_long(name, 63)
    if not _dns1123_label(name):
        faults.append("must not contain dots" if _dns1123_subdomain(name) else DNS1123_LABEL_RULE)
    return faults


def dns1123_subdomain_faults(name: str) -> list[str]:
    return _name_too_long(name, 253) + ([] if _dns1123_subdomain(name) else [DNS1123_SUBDOMAIN_RULE])


def dns1035_label_faults(name: str) -> list[str]:
    return _name_too_long(name, 63) + ([] if _dns1035_label(name) else [DNS1035_LABEL_RULE])


def config_key_faults(key: str) -> list[str]:
    """Faults of a key of a ConfigMap or Secret, which becomes a file name."""
    faults = _name_too_long(key, 253)
    if not _config_key(key):
        faults.append(CONFIG_KEY_RULE)
    if key == ".":
        faults.append("must not be '.'")
    elif key == "..":
        faults.append("must not be '..'")
    elif key.startswith(".."):
        faults.append("must not start with '..'")
    return faults
