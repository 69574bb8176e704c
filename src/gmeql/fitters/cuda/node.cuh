// One node of a program on the R rows of a lane: its value, and the slopes to its weighted inputs (`kernel/node.py`).

// u ** power, and the logarithm for its slope; 0 where u is 0 and the power above it, which then moves with neither.
DEVICE void power_value(double u, double power, double& value, double& kept) {
    const bool is_zero = u == 0.0 && power > 0.0;
    const double log_u = logarithm(u);
    kept = is_zero ? 0.0 : log_u;
    value = is_zero ? 0.0 : exponential(power * log_u);
}

// u = left constant * left slot, w = right constant * right slot. `kept` holds what the slopes would compute again.
// `whole` and `power` are the exponents of POWER_WHOLE and POWER_FITTED.
template <int R>
DEVICE void node_value(int op, const double (&u)[R], const double (&w)[R], int whole, double power, double (&value)[R],
                       double (&kept)[R]) {
#define ROWS for (int r = 0; r < R; ++r)
    switch (op) {
        case ID: ROWS value[r] = u[r]; break;
        case NEG: ROWS value[r] = -u[r]; break;
        case ADD: ROWS value[r] = u[r] + w[r]; break;
        case SUB: ROWS value[r] = u[r] - w[r]; break;
        case MUL: ROWS value[r] = u[r] * w[r]; break;
        case DIV: ROWS { kept[r] = 1.0 / w[r]; value[r] = u[r] * kept[r]; } break;
        case INV: ROWS value[r] = 1.0 / u[r]; break;
        case SIN: ROWS sine_cosine(u[r], value[r], kept[r]); break;
        case COS: ROWS sine_cosine(u[r], kept[r], value[r]); break;
        case SQRT: ROWS value[r] = sqrt(u[r]); break;
        case SQUARE: ROWS value[r] = u[r] * u[r]; break;
        case CUBE: ROWS value[r] = u[r] * u[r] * u[r]; break;
        case POW4: ROWS { const double s = u[r] * u[r]; value[r] = s * s; } break;
        case POW5: ROWS { const double s = u[r] * u[r]; value[r] = s * s * u[r]; } break;
        case POW6: ROWS { const double s = u[r] * u[r]; value[r] = s * s * s; } break;
        case EXP: ROWS value[r] = exponential(u[r]); break;
        case LOG: ROWS value[r] = logarithm(u[r]); break;
        case TANH:
            ROWS {
                const double decay = exponential(-2.0 * fabs(u[r])), t = (1.0 - decay) / (1.0 + decay);
                value[r] = u[r] >= 0.0 ? t : -t;
            }
            break;
        case ASIN: ROWS value[r] = arcsine(u[r]); break;
        case ACOS: ROWS value[r] = arccosine(u[r]); break;
        case ATAN: ROWS value[r] = arctangent(u[r]); break;
        case ABS: ROWS value[r] = fabs(u[r]); break;
        case POW: case POWER_FITTED: ROWS power_value(u[r], op == POW ? w[r] : power, value[r], kept[r]); break;
        case POWER_WHOLE:
            ROWS { kept[r] = whole_power(u[r], whole - 1); value[r] = whole != 0 ? kept[r] * u[r] : 1.0; }
            break;
        default: ROWS value[r] = not_a_number();
    }
}

// Slope of the node to u.
template <int R>
DEVICE void left_slope(int op, const double (&u)[R], const double (&w)[R], int whole, double power,
                       const double (&value)[R], const double (&kept)[R], double (&slope)[R]) {
    switch (op) {
        case ID: case ADD: case SUB: ROWS slope[r] = 1.0; break;
        case NEG: ROWS slope[r] = -1.0; break;
        case MUL: ROWS slope[r] = w[r]; break;
        case DIV: case SIN: ROWS slope[r] = kept[r]; break;
        case COS: ROWS slope[r] = -kept[r]; break;
        case INV: ROWS slope[r] = -value[r] * value[r]; break;
        case SQRT: ROWS slope[r] = 0.5 / fmax(value[r], 1e-150); break;
        case SQUARE: ROWS slope[r] = 2.0 * u[r]; break;
        case CUBE: ROWS slope[r] = 3.0 * u[r] * u[r]; break;
        case POW4: ROWS slope[r] = 4.0 * u[r] * u[r] * u[r]; break;
        case POW5: ROWS { const double s = u[r] * u[r]; slope[r] = 5.0 * s * s; } break;
        case POW6: ROWS { const double s = u[r] * u[r]; slope[r] = 6.0 * s * s * u[r]; } break;
        case EXP: ROWS slope[r] = value[r]; break;
        case LOG: ROWS slope[r] = 1.0 / u[r]; break;
        case TANH: ROWS slope[r] = 1.0 - value[r] * value[r]; break;
        case ASIN: ROWS slope[r] = 1.0 / sqrt(fmax(1.0 - u[r] * u[r], 1e-30)); break;
        case ACOS: ROWS slope[r] = -1.0 / sqrt(fmax(1.0 - u[r] * u[r], 1e-30)); break;
        case ATAN: ROWS slope[r] = 1.0 / (1.0 + u[r] * u[r]); break;
        case ABS: ROWS slope[r] = u[r] > 0.0 ? 1.0 : (u[r] < 0.0 ? -1.0 : 0.0); break;
        case POW: case POWER_FITTED:
            ROWS slope[r] = u[r] == 0.0 ? 0.0 : (op == POW ? w[r] : power) * value[r] / u[r];
            break;
        case POWER_WHOLE: ROWS slope[r] = whole * kept[r]; break;
        default: ROWS slope[r] = not_a_number();
    }
}

// Slope of the node to w; only of nodes that read two slots.
template <int R>
DEVICE void right_slope(int op, const double (&u)[R], const double (&value)[R], const double (&kept)[R],
                        double (&slope)[R]) {
    switch (op) {
        case ADD: ROWS slope[r] = 1.0; break;
        case SUB: ROWS slope[r] = -1.0; break;
        case MUL: ROWS slope[r] = u[r]; break;
        case DIV: ROWS slope[r] = -value[r] * kept[r]; break;
        default: ROWS slope[r] = value[r] * kept[r];  // POW
    }
}

DEVICE bool is_binary(int op) { return op == ADD || op == SUB || op == MUL || op == DIV || op == POW; }
