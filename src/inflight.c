/* inflight */
#include "node.h"
