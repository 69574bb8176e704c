// Sine, cosine, exponential and logarithm: the polynomials of `kernel/elementary.py`, so that the engines agree.

constexpr double ROUNDER = 6755399441055744.0;  // adding 1.5 * 2**52 leaves a whole number in the lowest bits
constexpr long long ROUNDER_BITS = 0x4338000000000000LL;
constexpr double LN2_HIGH = 0.693147180369123816490, LN2_LOW = 1.90821492927058770002e-10;

// sin and cos of u: reduce by multiples of pi/2, two polynomials, swap by quadrant; nan beyond the limit.
DEVICE void sine_cosine(double u, double& sine, double& cosine) {
    const double rounded = u * 0.6366197723675814 + ROUNDER;
    const long long quadrant = bits_of(rounded);
    const double q = rounded - ROUNDER;
    const double near = (u - q * 1.570796251296997) - q * 7.549789415861596e-08;  // pi/2 in parts of 24 bits
    const double r = (near - q * 5.390302529957765e-15) - q * 3.2820035428735005e-22;
    const double z = r * r;
    double s = 1.58962301576546568060e-10;
    s = -2.50507477628578072866e-8 + z * s;
    s = 2.75573136213857245213e-6 + z * s;
    s = -1.98412698295895385996e-4 + z * s;
    s = 8.33333333332211858878e-3 + z * s;
    s = -1.66666666666666307295e-1 + z * s;
    s = r + r * z * s;
    double c = -1.13585365213876817300e-11;
    c = 2.08757008419747316778e-9 + z * c;
    c = -2.75573141792967388112e-7 + z * c;
    c = 2.48015872888517045348e-5 + z * c;
    c = -1.38888888888730564116e-3 + z * c;
    c = 4.16666666666665929218e-2 + z * c;
    c = 1.0 - 0.5 * z + z * z * c;
    const bool odd = (quadrant & 1) != 0;
    const double bad = fabs(u) <= ANGLE_LIMIT ? 0.0 : not_a_number();
    sine = double_of(bits_of(odd ? c : s) ^ ((quadrant & 2) << 62)) + bad;
    cosine = double_of(bits_of(odd ? s : c) ^ (((quadrant + 1) & 2) << 62)) + bad;
}

// exp(x); nan beyond the limit.
DEVICE double exponential(double x) {
    const double u = fmin(fmax(x, -EXPONENTIAL_LIMIT), EXPONENTIAL_LIMIT);
    const double rounded = u * 1.4426950408889634 + ROUNDER;
    const double k = rounded - ROUNDER;
    const double r = (u - k * LN2_HIGH) - k * LN2_LOW;
    double p = 2.08767569878681e-9;
    p = 2.505210838544172e-8 + r * p;
    p = 2.755731922398589e-7 + r * p;
    p = 2.7557319223985893e-6 + r * p;
    p = 2.48015873015873e-5 + r * p;
    p = 1.984126984126984e-4 + r * p;
    p = 1.388888888888889e-3 + r * p;
    p = 8.333333333333333e-3 + r * p;
    p = 4.1666666666666664e-2 + r * p;
    p = 1.6666666666666666e-1 + r * p;
    p = 0.5 + r * p;
    p = 1.0 + r * p;
    p = 1.0 + r * p;
    const double power = double_of((long long)((unsigned long long)(bits_of(rounded) - (ROUNDER_BITS - 1023)) << 52));
    return p * power + (x <= EXPONENTIAL_LIMIT ? 0.0 : not_a_number());
}

// log(x), nan where x <= 0: exponent off the bits, atanh series on [sqrt(1/2), sqrt(2)].
DEVICE double logarithm(double x) {
    const long long raw = bits_of(x);
    const double exponent = double_of(((raw >> 52) & 0xFFF) + ROUNDER_BITS) - (ROUNDER + 1023.0);
    double m = double_of((raw & 0x000FFFFFFFFFFFFFLL) | 0x3FF0000000000000LL);
    const bool is_high = m > 1.4142135623730951;
    m = is_high ? 0.5 * m : m;
    const double e = is_high ? exponent + 1.0 : exponent;
    const double s = (m - 1.0) / (m + 1.0);
    const double z = s * s;
    double p = 5.263157894736841814e-2;
    p = 5.882352941176470507e-2 + z * p;
    p = 6.666666666666666657e-2 + z * p;
    p = 7.692307692307692735e-2 + z * p;
    p = 9.090909090909091161e-2 + z * p;
    p = 1.111111111111111049e-1 + z * p;
    p = 1.428571428571428492e-1 + z * p;
    p = 2.0e-1 + z * p;
    p = 3.333333333333333148e-1 + z * p;
    p = 1.0 + z * p;
    p = 2.0 * s * p;
    return e * LN2_HIGH + (p + e * LN2_LOW) + (x > 0.0 && x < infinity() ? 0.0 : not_a_number());
}

// x to a whole power, by squaring.
DEVICE double whole_power(double x, int exponent) {
    double result = 1.0, square = x;
    for (int count = exponent < 0 ? -exponent : exponent; count > 0; count >>= 1) {
        if (count & 1) result *= square;
        square *= square;
    }
    return exponent < 0 ? 1.0 / result : result;
}

// Rare and long: one copy each, out of the way of the others.
CALLED double arcsine(double x) { return asin(x); }
CALLED double arccosine(double x) { return acos(x); }
CALLED double arctangent(double x) { return atan(x); }
