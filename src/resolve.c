/* resolve */
#include "node.h"
