"""What monitoring systems are told of calls: metrics for Prometheus, and spans and metrics in OpenTelemetry's words. Off by default."""
