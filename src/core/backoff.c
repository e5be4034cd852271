/* Random delays. */
#include "core/backoff.h"
