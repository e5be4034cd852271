/* acquire */
#include "manager.h"
