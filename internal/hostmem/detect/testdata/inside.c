// Stands for an allocator that was built to be called by names of its own.
int my_mallctl(void);
int my_mallctl(void) { return 0; }

#ifdef PARTLY // one of its names was left without the prefix
int mallctlnametomib(void);
int mallctlnametomib(void) { return my_mallctl(); }
#endif
