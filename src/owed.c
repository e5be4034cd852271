/* owed */
#include "manager.h"
