/* inspect */
#include "manager.h"
