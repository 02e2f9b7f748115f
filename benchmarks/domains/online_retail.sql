-- UCI Online Retail as an owner would declare it; some lines have no customer, some no description.
CREATE TABLE online_retail (
    "InvoiceNo" VARCHAR NOT NULL,
    "StockCode" VARCHAR NOT NULL,
    "Description" VARCHAR,
    "Quantity" INTEGER NOT NULL CHECK ("Quantity" <> 0),
    "InvoiceDate" TIMESTAMP NOT NULL,
    "UnitPrice" DECIMAL(10,3) NOT NULL,
    "CustomerID" INTEGER,
    "Country" VARCHAR NOT NULL
);
