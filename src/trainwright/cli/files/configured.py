"""The plugins that a configuration file runs, for commands that need no cluster."""

from __future__ import annotations

import sys
from pathlib import Path

from trainwright.api.configuration import Configuration, ConfigurationError
from trainwright.api.wellknown import SYSTEM_NAMESPACE
from trainwright.cli.failure import Failure
from trainwright.operator.configfile import parse
from trainwright.pipeline import Framework, PipelineError
from trainwright.plugins.registry import Loaded, Registry


def framework_of(config: str | None, feature_gates: str | None) -> Framework:
    """The framework, as the operator would start with it: a broken file is only told of, on standard error."""
    loaded = plugins_of(config, feature_gates)
    try:
        loaded.require_installed()
    except PipelineError as error:
        raise Failure(str(error)) from None
    for fault in loaded.broken:
        print(f"Warning: plugin file {fault.where}: {fault.why}", file=sys.stderr)
    for name in loaded.missing:
        print(f"Warning: there is no plugin {name}, which the configuration names", file=sys.stderr)
    return loaded.framework


def plugins_of(config: str | None, feature_gates: str | None) -> Loaded:
    """All plugins, with what is broken."""
    configuration = _read(config, feature_gates)
    server = ""
    if configuration.reports_progress:
        service = configuration.cert_management.webhook_service_name
        server = f"https://{service}.{SYSTEM_NAMESPACE}.svc:{configuration.status_server.port}"
    chosen = configuration.plugins
    registry = Registry(
        enabled=chosen.enabled_plugins,
        disabled=chosen.disabled_plugins,
        directory=chosen.directory,
        progress_server=server,
        kubernetes_gang=configuration.gangs_by_kubernetes,
    )
    try:
        return registry.load()
    except PipelineError as error:
        raise Failure(f"{config or 'configuration'}: {error}") from None


def _read(config: str | None, feature_gates: str | None) -> Configuration:
    try:
        text = Path(config).read_text() if config is not None else ""
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{config}: {getattr(error, 'strerror', None) or 'not UTF-8 text'}", 2) from None
    try:
        return parse(text, feature_gates=feature_gates or "")
    except ConfigurationError as error:
        raise Failure(f"{config or '--feature-gates'}: {error}", 2) from None
