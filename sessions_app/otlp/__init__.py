"""OpenTelemetry traces as sessions: decoding, the table of dialects, the ledger of spans, the projection onto rows."""
