"""Polynomials and split constants of vector math, lowest power first. Written by tests/tools/fit_polynomials.py."""


def exact(*digits: str) -> tuple[float, ...]:
    return tuple(map(float.fromhex, digits))


# (exp(r) - 1 - r) / r**2, |r| <= ln(2)/2; error 2**-53.0
EXP = exact(
    "0x1.0000000000001p-1",
    "0x1.5555555555557p-3",
    "0x1.5555555553bbcp-5",
    "0x1.111111110fbc7p-7",
    "0x1.6c16c1792f6d8p-10",
    "0x1.a01a01af5db85p-13",
    "0x1.a019b69732264p-16",
    "0x1.71ddf5b0da51ap-19",
    "0x1.28946c151b5a6p-22",
    "0x1.af6a3c0db43eep-26",
)

# (exp(r) - 1 - r) / r**2, |r| <= ln(2)/2; error 2**-23.8
EXP_F32 = exact(
    "0x1.0000000000000p-1",
    "0x1.5554d80000000p-3",
    "0x1.5554fe0000000p-5",
    "0x1.120faa0000000p-7",
    "0x1.6d36a00000000p-10",
)

# (2**r - 1) / r, |r| <= 1/2; error 2**-56.0
EXP2 = exact(
    "0x1.62e42fefa39efp-1",
    "0x1.ebfbdff82c599p-3",
    "0x1.c6b08d704a0ccp-5",
    "0x1.3b2ab6fba1aa4p-7",
    "0x1.5d87fe78a2360p-10",
    "0x1.4309130a45dbdp-13",
    "0x1.ffcbfc79c3bccp-17",
    "0x1.62bfd1f0c4d63p-20",
    "0x1.b524cb3217e4fp-24",
    "0x1.e60b41de4720ep-28",
    "0x1.ea27f684bbdc6p-32",
)

# (2**r - 1) / r, |r| <= 1/2; error 2**-26.9
EXP2_F32 = exact(
    "0x1.62e4300000000p-1",
    "0x1.ebfbe00000000p-3",
    "0x1.c6af640000000p-5",
    "0x1.3b2a1e0000000p-7",
    "0x1.5f0ece0000000p-10",
    "0x1.4449240000000p-13",
)

# (2 atanh(s) / s - 2) / s**2 in s**2; error 2**-51.5
LOG = exact(
    "0x1.5555555555558p-1",
    "0x1.9999999995077p-2",
    "0x1.2492492e35998p-2",
    "0x1.c71c628e9e0c9p-3",
    "0x1.7462cd53e5318p-3",
    "0x1.39fb2efe206abp-3",
    "0x1.2b7fa64da1a6ap-3",
)

# (2 atanh(s) / s - 2) / s**2 in s**2; error 2**-22.3
LOG_F32 = exact(
    "0x1.55555c0000000p-1",
    "0x1.997bdc0000000p-2",
    "0x1.2ef5160000000p-2",
)

# (atanh(s) / s - 1 - s**2/3) / s**4 in s**2; error 2**-59.8
ATANH = exact(
    "0x1.999999999999ap-3",
    "0x1.2492492492527p-3",
    "0x1.c71c71c6e8f44p-4",
    "0x1.745d177c10ad9p-4",
    "0x1.3b1395347c9e0p-4",
    "0x1.1118e94969b8bp-4",
    "0x1.df75d14baa685p-5",
    "0x1.e077188742e3cp-5",
)

# (sin(r) / r - 1) / r**2 in r**2, |r| <= pi/4; error 2**-55.3
SIN = exact(
    "-0x1.5555555555554p-3",
    "0x1.1111111110b1ap-7",
    "-0x1.a01a019e5ff52p-13",
    "0x1.71de3768b91acp-19",
    "-0x1.ae5fdbc5929d5p-26",
    "0x1.5dfa4399a5f77p-33",
)

# (sin(r) / r - 1) / r**2 in r**2, |r| <= pi/4; error 2**-25.5
SIN_F32 = exact(
    "-0x1.5555520000000p-3",
    "0x1.110bf20000000p-7",
    "-0x1.9aace00000000p-13",
)

# (cos(r) - 1 + r**2/2) / r**4 in r**2; error 2**-59.3
COS = exact(
    "0x1.5555555555555p-5",
    "-0x1.6c16c16c1691ap-10",
    "0x1.a01a019f3cd0fp-16",
    "-0x1.27e4fa00ec0bbp-22",
    "0x1.1eeb5144ec937p-29",
    "-0x1.906cc8e9926ecp-37",
)

# (cos(r) - 1 + r**2/2) / r**4 in r**2; error 2**-28.8
COS_F32 = exact(
    "0x1.5555540000000p-5",
    "-0x1.6c12a80000000p-10",
    "0x1.9bc1820000000p-16",
)

# (atan(t) / t - 1) / t**2 in t**2, |t| <= tan(pi/8); error 2**-54.7
ATAN = exact(
    "-0x1.5555555555555p-2",
    "0x1.99999999992b1p-3",
    "-0x1.249249242e44ap-3",
    "0x1.c71c718053ec6p-4",
    "-0x1.745d0a620f485p-4",
    "0x1.3b125117d4164p-4",
    "-0x1.10f97c604830ap-4",
    "0x1.dfd550f02f5dap-5",
    "-0x1.a0413ef02020ep-5",
    "0x1.4064bd87c0666p-5",
    "-0x1.37c6a16c692ffp-6",
)

# (atan(t) / t - 1) / t**2 in t**2, |t| <= tan(pi/8); error 2**-25.9
ATAN_F32 = exact(
    "-0x1.5555540000000p-2",
    "0x1.99971a0000000p-3",
    "-0x1.241d1e0000000p-3",
    "0x1.b7cdc40000000p-4",
    "-0x1.076a540000000p-4",
)

# (asin(x) / x - 1) / x**2 in x**2, |x| <= 1/2; error 2**-55.9
ASIN = exact(
    "0x1.5555555555556p-3",
    "0x1.3333333332ebdp-4",
    "0x1.6db6db6e33356p-5",
    "0x1.f1c71c1ce46ccp-6",
    "0x1.6e8bb1e919659p-6",
    "0x1.1c4d32ae44ec8p-6",
    "0x1.c9cf677405c4cp-7",
    "0x1.78228b4086228p-7",
    "0x1.525b4e274fa99p-7",
    "0x1.64cb211c6bf5ap-8",
    "0x1.1db3b63ecb676p-6",
    "-0x1.e89a42a22497dp-7",
    "0x1.d7d7f9098002dp-6",
)

# (asin(x) / x - 1) / x**2 in x**2, |x| <= 1/2; error 2**-27.8
ASIN_F32 = exact(
    "0x1.5555540000000p-3",
    "0x1.3334320000000p-4",
    "0x1.6d5b600000000p-5",
    "0x1.fd96920000000p-6",
    "0x1.18cac80000000p-6",
    "0x1.1428460000000p-5",
)

# erf(x) / x - 1 in x**2, |x| <= 1; error 2**-56.9
ERF = exact(
    "0x1.06eba8214db68p-3",
    "-0x1.812746b0379c0p-2",
    "0x1.ce2f21a040f20p-4",
    "-0x1.b82ce31202513p-6",
    "0x1.565bccfa1cce7p-8",
    "-0x1.c02db0604590bp-11",
    "0x1.f9a2bdb8fcb67p-14",
    "-0x1.f4ca7a42278fdp-17",
    "0x1.b981799c363d2p-20",
    "-0x1.5c10c8957465dp-23",
    "0x1.d75aba73d5ca8p-27",
    "-0x1.ac641bc040b16p-31",
)

# erf(x) / x - 1 in x**2, |x| <= 1; error 2**-29.6
ERF_F32 = exact(
    "0x1.06eba80000000p-3",
    "-0x1.81273e0000000p-2",
    "0x1.ce2d0e0000000p-4",
    "-0x1.b7fa8c0000000p-6",
    "0x1.5410e00000000p-8",
    "-0x1.a444580000000p-11",
    "0x1.4a33360000000p-14",
)

# (atanh(s) / s - 1) / s**2 in s**2, to 2**-38; error 2**-38.0
SHORT_ATANH = exact(
    "0x1.55555555655a6p-2",
    "0x1.999998c64d2a8p-3",
    "0x1.2493279e4dc8ap-3",
    "0x1.c679026104935p-4",
    "0x1.8cafc43b2cef4p-4",
)

# (2**r - 1) / r, to 2**-32; error 2**-32.4
SHORT_EXP2 = exact(
    "0x1.62e42fef9e657p-1",
    "0x1.ebfbe049cc69dp-3",
    "0x1.c6b08da846b41p-5",
    "0x1.3b2a165ce6103p-7",
    "0x1.5d8768f11445cp-10",
    "0x1.4445093e8c98dp-13",
    "0x1.00d073a46fd88p-16",
)

# log(erfc(x)) in x - 1, 1 <= x <= 6.0; error of erfc 2**-57.1
LOG_ERFC = exact(
    "-0x1.d97fbf27aa2a1p+0",
    "-0x1.51c9b0006c21ap+1",
    "-0x1.afabc11a2aff2p-1",
    "-0x1.5477f099b44f0p-5",
    "0x1.48c9d37f49c88p-7",
    "-0x1.033f5a061b156p-9",
    "0x1.f1b0471fd697ap-13",
    "0x1.b92e272d55c8cp-16",
    "-0x1.c85341bfdf00dp-16",
    "0x1.448608416f467p-17",
    "-0x1.1e2afe694206fp-19",
    "0x1.b81acf121f3c6p-23",
    "0x1.f1be85beb8abbp-25",
    "-0x1.1e9dd28b5f80cp-25",
    "0x1.247c01a909da2p-27",
    "-0x1.6a4c268a99c80p-30",
    "0x1.062a9d61969b5p-33",
    "-0x1.56040b7636f21p-38",
)

# log(erfc(x)) in x - 1, 1 <= x <= 4.0; error of erfc 2**-29.8
LOG_ERFC_F32 = exact(
    "-0x1.d97fc00000000p+0",
    "-0x1.51c9aa0000000p+1",
    "-0x1.afad320000000p-1",
    "-0x1.53fa020000000p-5",
    "0x1.4420660000000p-7",
    "-0x1.dedb7c0000000p-10",
    "0x1.857e080000000p-13",
)

# ln 2, for products with |n| < 2**11
LN2 = exact(
    "0x1.62e42fefa3800p-1",
    "0x1.ef35793c76730p-45",
)

# the same for float32
LN2_F32 = exact(
    "0x1.62e4000000000p-1",
    "0x1.7f7d1c0000000p-20",
)

# 1 / ln 2, the first part 21 bits for exact products with 32-bit values
LOG2E_SHORT = exact(
    "0x1.7154700000000p+0",
    "0x1.94ae0bf85ddf4p-22",
)

# 1 / ln 2, the first part 12 bits
LOG2E_F32 = exact(
    "0x1.7160000000000p+0",
    "-0x1.7135a80000000p-13",
)

# 1 / ln 10
LOG10E_SHORT = exact(
    "0x1.bcb7b00000000p-2",
    "0x1.526e50e32a6abp-26",
)

# 1 / ln 10
LOG10E_F32 = exact(
    "0x1.bcc0000000000p-2",
    "-0x1.09d5b20000000p-15",
)

# log10(2)
LOG10_2 = exact(
    "0x1.34413509f7800p-2",
    "0x1.fef311f12b358p-46",
)

# log10(2)
LOG10_2_F32 = exact(
    "0x1.3440000000000p-2",
    "0x1.3509f80000000p-18",
)

# pi / 2, for fused products
PIO2 = exact(
    "0x1.921fb54442d18p+0",
    "0x1.1a62633145c07p-54",
    "-0x1.f1976b7ed8fbcp-110",
)

# pi / 2, for rounded products with |n| < 2**22
PIO2_SHORT = exact(
    "0x1.921fb54800000p+0",
    "-0x1.de973dc800000p-31",
    "-0x1.9d9cceba3f91fp-62",
)

# pi / 2, for fused products
PIO2_F32 = exact(
    "0x1.921fb60000000p+0",
    "-0x1.777a5c0000000p-25",
    "-0x1.ee59da0000000p-50",
)

# pi
PI = exact(
    "0x1.921fb54442d18p+1",
    "0x1.1a62633145c07p-53",
)

# pi
PI_F32 = exact(
    "0x1.921fb60000000p+1",
    "-0x1.777a5c0000000p-24",
)

# 1 / 3
THIRD = exact(
    "0x1.5555555555555p-2",
    "0x1.5555555555555p-56",
)

# 2 / ln 2
TWO_LOG2E = exact(
    "0x1.71547652b82fep+1",
    "0x1.777d0ffda0d24p-55",
)
