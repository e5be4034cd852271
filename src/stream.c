/* stream */
#include "node.h"
