/* A library whose names begin as the driver's do. */
int cudnnCreate(void) { return 41; }
int cuFooInit(void) { return 42; }
