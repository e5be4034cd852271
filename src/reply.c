/* reply */
#include "node.h"
