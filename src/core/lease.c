/* The lease's state machine. */
#include "core/lease.h"
