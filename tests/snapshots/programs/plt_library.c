// gcc -O2 -shared -fPIC -nostdlib -o libplt_library.so
int called(void) { return 1; }
