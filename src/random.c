/* random */
#include "loop.h"
