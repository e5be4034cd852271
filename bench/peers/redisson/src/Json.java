// The few kinds of JSON that an answer needs.

final class Json {
    private Json() {
    }

    static String string(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ') {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        return out.append('"').toString();
    }

    static String microseconds(long[] ns, int count) {
        StringBuilder out = new StringBuilder("[");
        for (int i = 0; i < count; i++) {
            out.append(i == 0 ? "" : ",").append(Math.round(ns[i] / 100.0) / 10.0);
        }
        return out.append(']').toString();
    }

    /** The message of what went wrong first, not of what only wraps it. */
    static String sentence(Throwable error) {
        Throwable cause = error.getCause();
        if (cause != null && cause.toString().equals(error.getMessage())) {
            return sentence(cause);
        }
        return error.getMessage() == null ? error.getClass().getSimpleName() : error.getMessage();
    }
}
