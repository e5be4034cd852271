/* Votes of a round. */
#include "core/quorum.h"
