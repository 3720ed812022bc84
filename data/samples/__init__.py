"""Our own sample invoices: described once, rendered as text and PDF, with gold from the same description."""
