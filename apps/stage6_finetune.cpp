#include "apps/commands.h"

int main(int argc, char** argv) {
  return strata::apps::run_program(strata::apps::stage6_program(), argc, argv);
}
