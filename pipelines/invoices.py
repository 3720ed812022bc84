"""``extractor run invoices FOLDER``"""

from extractor import Pipeline
from schemas.invoice import create_invoice

invoices = Pipeline(create_invoice)
