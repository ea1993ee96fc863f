"""Chinese: long numbers in threes, as in the programs that people use."""

THOUSAND_SEPARATOR = ","
NUMBER_GROUPING = 3
