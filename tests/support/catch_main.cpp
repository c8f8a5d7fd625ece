// Catch2 v2 has no library with main(); v3 has, and then this file is empty.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
