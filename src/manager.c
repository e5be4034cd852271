/* manager */
#include "manager.h"
