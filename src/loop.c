/* loop */
#include "loop.h"
