/* query */
#include "manager.h"
