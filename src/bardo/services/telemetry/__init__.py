"""The reports on calls to monitoring systems: metrics for Prometheus, and spans and metrics in OpenTelemetry's words. Off by default."""
