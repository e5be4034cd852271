/* schedule */
#include "manager.h"
