"""Django writes 30 Ноябрь; it must be 30 ноября."""

MONTH_DAY_FORMAT = "j E"
