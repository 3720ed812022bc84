"""The sample invoices. Every company and person is invented."""

from __future__ import annotations

from datetime import date

from samples.model import Invoice, Line

ENGLISH = {
    "title": "INVOICE", "number": "Invoice number", "date": "Invoice date", "due": "Payment due", "to": "Bill to",
    "item": "Description", "qty": "Qty", "price": "Unit price", "amount": "Amount", "net": "Subtotal", "total": "Total",
    "carry": "Carried forward",
}  # fmt: skip
GERMAN = {
    "title": "RECHNUNG", "number": "Rechnungsnummer", "date": "Rechnungsdatum", "due": "Zahlbar bis", "to": "An",
    "item": "Bezeichnung", "qty": "Menge", "price": "Einzelpreis", "amount": "Betrag", "net": "Nettobetrag",
    "total": "Gesamtbetrag", "carry": "Übertrag",
}  # fmt: skip
FRENCH = {
    "title": "FACTURE", "number": "Facture n°", "date": "Date de facture", "due": "Échéance", "to": "Client",
    "item": "Désignation", "qty": "Qté", "price": "Prix unitaire", "amount": "Montant", "net": "Total HT",
    "total": "Total TTC", "carry": "Report",
}  # fmt: skip
ITALIAN = {
    "title": "FATTURA", "number": "Numero fattura", "date": "Data fattura", "due": "Scadenza", "to": "Spett.le",
    "item": "Descrizione", "qty": "Q.tà", "price": "Prezzo", "amount": "Importo", "net": "Imponibile",
    "total": "Totale fattura", "carry": "Riporto",
}  # fmt: skip

ROOFING = Invoice(
    "RB-20417", date(2024, 3, 5), ("Red Barn Roofing LLC", "41 Quarry Road", "Millbrook, VT 05999"),
    ("Harlan & Daughters", "7 Depot Street", "Millbrook, VT 05999"), "USD",
    (Line("Architectural shingles, bundle", "36", "38.50", "1386.00"), Line("Ridge vent, 4 ft", "9", "17.25", "155.25"),
     Line("Labor, two roofers", "14", "95.00", "1330.00")),
    (("Sales tax 6% on materials", "92.48"),), ENGLISH, due=date(2024, 4, 4), dates="us", symbol="$",
    extra=(("Job site", "7 Depot Street"),), note="Thank you for your business.",
)  # fmt: skip
BAKERY = Invoice(
    "2024-0117", date(2024, 3, 5), ("Backstube Möhlenkamp GmbH", "Am Mühlbach 3", "48999 Übersee-Nord"),
    ("Gasthof zum Grünen Jäger", "Waldstraße 12", "48998 Kleinröhrsdorf"), "EUR",
    (Line("Brötchen, gemischt", "480", "0.38", "182.40"), Line("Bauernbrot 1 kg", "65", "3.90", "253.50"),
     Line("Blechkuchen Pflaume", "12", "21.50", "258.00"), Line("Lieferpauschale März", "1", "1500.00", "1500.00")),
    (("MwSt. 7 %", "153.57"),), GERMAN, due=date(2024, 3, 19), mark=",", group=".", dates="german", symbol="EUR",
    extra=(("Kundennummer", "10482"), ("Lieferschein", "LS-8841")), footer=("USt-IdNr. DE999123451",),
)  # fmt: skip
CARPENTER = Invoice(
    "FA-2024-031", date(2024, 2, 3), ("Menuiserie Vauquelin et Fils", "18 rue des Copeaux", "29990 Port-Brévin"),
    ("Librairie La Marée Basse", "2 quai des Brumes", "29990 Port-Brévin"), "EUR",
    (Line("Étagère en chêne, sur mesure", "3", "640.00", "1920.00"), Line("Pose et réglage", "8.5", "48.00", "408.00")),
    (("TVA 20 %", "465.60"),), FRENCH, due=date(2024, 3, 4), mark=",", group=" ", dates="french", symbol="€",
    footer=("SIRET 999 123 456 00017",),
)  # fmt: skip
CLEANING = Invoice(
    "000482", date(2024, 4, 19), ("Brightwater Window Cleaning Ltd", "Unit 4, Old Tannery", "Haverby HX99 1AA"),
    ("The Copper Kettle", "High Street", "Haverby HX99 2BB"), "GBP",
    (Line("Shop front, weekly clean (April)", "4", "22.50", "90.00"), Line("Upper floor windows", "1", "64.00", "64.00")),
    (("VAT 20%", "30.80"),), ENGLISH, due=date(2024, 5, 3), dates="uk", symbol="£",
    extra=(("Account", "CK-7"),), footer=("VAT reg. GB 999 1234 56",),
)  # fmt: skip
CREDIT = Invoice(
    "CN-0093", date(2024, 6, 28), ("Fenwick Paper Supplies Ltd", "9 Mill Lane", "Osterley OX99 3CC"),
    ("Quill & Co Solicitors", "1 Market Square", "Osterley OX99 4DD"), "GBP",
    (Line("Returned: copy paper A4, box", "5", "21.00", "-105.00"), Line("Returned: lever arch files", "20", "0.75", "-15.00")),
    (("VAT 20%", "-24.00"),), {**ENGLISH, "title": "CREDIT NOTE", "number": "Credit note number", "date": "Date"},
    dates="uk", symbol="£", bracket_negative=True, extra=(("Original invoice", "INV-7741"),),
)  # fmt: skip
COURIER = ("Vlotte Koeriers BV", "Havenweg 88", "9999 ZX Oudewater")
ATELIER = ("Atelier Noordster", "Kade 5", "9998 AB Oudewater")
COURIER_MAY = Invoice(
    "VK-5501", date(2024, 5, 31), COURIER, ATELIER, "EUR",
    (Line("City deliveries May", "41", "6.20", "254.20"), Line("Express surcharge", "3", "9.00", "27.00")),
    (("VAT 21%", "59.05"),), ENGLISH, due=date(2024, 6, 14), dates="long", symbol="EUR",
)  # fmt: skip
COURIER_JUNE = Invoice(
    "VK-5548", date(2024, 6, 30), COURIER, ATELIER, "EUR",
    (Line("City deliveries June", "37", "6.20", "229.40"), Line("Weekend delivery", "2", "14.50", "29.00")),
    (("VAT 21%", "54.26"),), ENGLISH, due=date(2024, 7, 14), dates="long", symbol="EUR",
)  # fmt: skip
OFFICE = Invoice(
    "RE-88213", date(2024, 9, 12), ("Bürowelt Tannhäuser KG", "Industriestraße 40", "01999 Neustadt-Ost"),
    ("Kanzlei Dr. Ohlendorf", "Schlossplatz 1", "01998 Altstadt"), "EUR",
    (Line("Schreibtisch höhenverstellbar", "2", "489.00", "978.00"), Line("Bürostuhl Modell Ida", "2", "229.50", "459.00"),
     Line("Fachbuch Arbeitsrecht", "3", "42.00", "126.00")),
    (("USt. 19 %", "273.03"), ("USt. 7 %", "8.82")), GERMAN, due=date(2024, 10, 12), mark=",", group=".",
    dates="german", symbol="EUR",
    extra=(("Kundennummer", "50771"), ("Auftragsnummer", "A-2024-3310"), ("Lieferschein", "99120"), ("Lieferdatum", "10.09.2024")),
    footer=("Bank: Sparkasse Neustadt-Ost", "IBAN DE00 9999 0000 0012 3456 00", "USt-IdNr. DE999887766"),
)  # fmt: skip
ALPS = Invoice(
    "24-1038", date(2024, 11, 8), ("Säumerpfad Treuhand AG", "Bergstrasse 21", "9999 Hinterthal"),
    ("Käserei Gantenbein", "Dorfplatz 2", "9998 Vorderthal"), "CHF",
    (Line("Jahresabschluss 2023", "1", "2450.00", "2450.00"), Line("Beratung MWST, Stunden", "3.5", "180.00", "630.00")),
    (("MWST 8.1 %", "249.48"),), {**GERMAN, "net": "Zwischentotal", "total": "Total"}, due=date(2024, 12, 8),
    mark=".", group="'", dates="german", symbol="CHF", footer=("IBAN CH00 0999 9000 1234 5678 9", "CHE-999.123.456 MWST"),
)  # fmt: skip
WINE = Invoice(
    "2024/0219", date(2024, 7, 15), ("Cantina Serravalle S.r.l.", "Via delle Botti 6", "99010 Collealto"),
    ("Enoteca Il Tappo", "Piazza Vecchia 3", "99011 Roccabruna"), "EUR",
    (Line("Rosso Riserva 2019, cassa da 6", "10", "96.00", "960.00"), Line("Bianco 2023, cassa da 6", "15", "54.00", "810.00"),
     Line("Trasporto", "1", "35.00", "35.00")),
    (("IVA 22%", "397.10"),), ITALIAN, due=date(2024, 8, 14), mark=",", group=".", dates="uk", symbol="€",
    footer=("P. IVA IT99912345678",),
)  # fmt: skip
HARDWARE = Invoice(
    "HW-3306", date(2024, 8, 2), ("Halloran Hardware Wholesale", "200 Dock Street", "Portmallow PM9 9ZZ"),
    ("Seaview Guest House", "14 Cliff Road", "Portmallow PM9 8YY"), "EUR",
    tuple(
        Line(name, quantity, price, amount)
        for name, quantity, price, amount in (
            ("Wood screws 4x40, box", "12", "4.80", "57.60"), ("Wall plugs 8 mm, bag", "10", "3.25", "32.50"),
            ("Masonry paint white 10 l", "6", "58.00", "348.00"), ("Paint roller set", "4", "11.90", "47.60"),
            ("Masking tape 50 m", "15", "2.60", "39.00"), ("LED bulb E27 9 W", "40", "3.15", "126.00"),
            ("Extension lead 5 m", "5", "13.40", "67.00"), ("Door handle brass", "8", "24.75", "198.00"),
            ("Hinge 100 mm, pair", "16", "5.20", "83.20"), ("Silicone sealant clear", "9", "6.45", "58.05"),
            ("Shower head chrome", "7", "31.00", "217.00"), ("Radiator valve", "11", "12.80", "140.80"),
            ("Smoke alarm", "14", "18.50", "259.00"), ("Key safe", "2", "36.25", "72.50"),
        )
    ),
    (("VAT 23%", "401.64"),), ENGLISH, due=date(2024, 9, 1), dates="long", symbol="EUR",
)  # fmt: skip
STUDIO = Invoice(
    "1107", date(2024, 10, 1), ("Larkspur Design Studio", "880 Juniper Ave", "Cedar Flats, OR 97999"),
    ("Nimbus Kites Inc.", "12 Harbor Way", "Cedar Flats, OR 97998"), "USD",
    (Line("Logo redesign, fixed fee", None, None, "2400.00"), Line("Packaging layout, hours", "18", "110.00", "1980.00")),
    (("Tax exempt", "0.00"),), ENGLISH, due=date(2024, 10, 31), dates="us", symbol="$",
)  # fmt: skip
TRAINING = Invoice(
    "INV-0612", date(2024, 3, 5), ("Stepping Stone Training Ltd", "3 Abbey Court", "Wexcombe WX99 5EE"),
    ("Orchard Vale Council", "Civic Centre", "Wexcombe WX99 6FF"), "GBP",
    (Line("First aid course, per day", "2", "540.00", "1080.00"), Line("Course handbooks", "24", "6.50", "156.00"),
     Line("Discount for early booking", None, None, "-61.80")),
    (("VAT 20%", "234.84"),), {**ENGLISH, "net": "Net"}, due=date(2024, 4, 4), dates="iso", symbol="£",
    extra=(("Your order", "PO-4471"), ("Course date", "2024-02-27")),
)  # fmt: skip
BOATS = Invoice(
    "B-7790", date(2024, 5, 17), ("Nordhavn Bådeværft ApS", "Skibsbyggervej 9", "9999 Nordhavn"),
    ("Fjordens Sejlklub", "Moleallé 1", "9998 Sydhavn"), "DKK",
    (Line("Hull cleaning, 32 ft", "1", "3200.00", "3200.00"), Line("Anodes, zinc", "4", "145.50", "582.00"),
     Line("Antifouling, litres", "6", "310.00", "1860.00")),
    (("VAT 25%", "1410.50"),), ENGLISH, due=date(2024, 6, 16), mark=",", group=".", dates="long", symbol="DKK",
    footer=("CVR 99912345",),
)  # fmt: skip

MEETING = """Notes from the meeting of the allotment society
Village hall, 14 March 2024

Present: Mrs Oduya (chair), Mr Pell, Mr Lindqvist, Ms Achterberg.

1. Water butts. Mr Pell has asked around: a 200 litre butt costs about 38.00 pounds at the garden centre, and 31.50
   if we order ten. It was agreed to ask the members first who wants one.
2. The hedge. Two quotations are expected for the next meeting. Last year the work came to 420.00 pounds.
3. Summer fair. Ms Achterberg offers to bake. Stall fees stay at 5.00 pounds.
4. Nobody has found the key to the shed.

Next meeting: 11 April, same place.
"""
