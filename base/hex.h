/* Hexadecimal digits. */
#ifndef SL_BASE_HEX_H
#define SL_BASE_HEX_H

/* The value of the digit, -1 when it is not one. */
static inline int sl_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

#endif
