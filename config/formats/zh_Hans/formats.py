"""Django writes 1248312 and 07月5日; people here read 1,248,312 and 7月5日."""

MONTH_DAY_FORMAT = "n月j日"
THOUSAND_SEPARATOR = ","
NUMBER_GROUPING = 3
