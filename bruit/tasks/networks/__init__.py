"""Networks of torch as tasks: any module whose layers treat records one by one."""
