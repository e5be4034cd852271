/* node */
#include "node.h"
