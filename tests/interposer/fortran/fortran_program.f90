! Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
! see LICENSE. SPDX-License-Identifier: Apache-2.0

! A program in Fortran: collectives in all forms, MPI_IN_PLACE and MPI_BOTTOM, which are addresses of
! Fortran's own, and an op of the program. Built with the module, and with mpif.h. To be run
! interposed, without trials.

subroutine join(in, inout, n, type)
  implicit none
  integer :: n, type
  integer :: in(2, n), inout(2, n)
  ! Maps x -> first * x + second, one after another: the order shows.
  inout(2, :) = inout(2, :) + in(2, :) * inout(1, :)
  inout(1, :) = inout(1, :) * in(1, :)
end subroutine join

program fortran_program
#ifdef SUCL_MPIF
  implicit none
  include 'mpif.h'
#else
  use mpi
  implicit none
#endif
  external :: join
  integer :: code, rank, ranks, failures, i

  failures = 0
  call MPI_INIT(code)
  call MPI_COMM_RANK(MPI_COMM_WORLD, rank, code)
  call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, code)
  do i = 1, 6
    call MPI_BARRIER(MPI_COMM_WORLD, code)
  end do
  do i = 1, 8
    call reductions(i)
    call moves(i)
    call absolute(i)
    call own_op()
  end do
  print '(a, i0, a, i0, a)', 'rank ', rank, ': ', failures, ' failures'
  call MPI_FINALIZE(code)
  if (failures > 0) stop 1

contains

  subroutine expect(right, what)
    logical, intent(in) :: right
    character(*), intent(in) :: what
    if (right .and. code == MPI_SUCCESS) return
    failures = failures + 1
    print '(a, i0, 3a)', 'rank ', rank, ': ', what, ' is wrong'
  end subroutine expect

  subroutine reductions(n)
    integer, intent(in) :: n
    double precision :: x(n), all(n), later(n)
    integer :: counts(ranks), part(n), request, status(MPI_STATUS_SIZE)
    integer, allocatable :: wide(:)
    double precision :: total
    total = ranks * (ranks - 1) / 2.0d0 + ranks * n
    x = rank + n
    call MPI_ALLREDUCE(x, all, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, code)
    call expect(maxval(abs(all - total)) == 0, 'allreduce')
    later = -1
    call MPI_IALLREDUCE(x, later, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, request, code)
    call MPI_WAIT(request, status, code)
    call expect(maxval(abs(later - total)) == 0, 'iallreduce')
    call MPI_ALLREDUCE(MPI_IN_PLACE, x, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, code)
    call expect(maxval(abs(x - total)) == 0, 'allreduce in place')
    counts = n
    allocate (wide(n * ranks))
    wide = rank + 1
    call MPI_REDUCE_SCATTER(wide, part, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
    call expect(all_are(part, ranks * (ranks + 1) / 2), 'reduce_scatter')
    part = rank + 1
    call MPI_SCAN(MPI_IN_PLACE, part, n, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, code)
    call expect(all_are(part, rank + 1), 'scan in place')
  end subroutine reductions

  logical function all_are(values, wanted)
    integer, intent(in) :: values(:), wanted
    all_are = all(values == wanted)
  end function all_are

  subroutine moves(n)
    integer, intent(in) :: n
    integer :: words(n), every(n, 0:ranks - 1), own(n), root, r
    root = mod(n, ranks)
    words = -1
    if (rank == root) words = n
    call MPI_BCAST(words, n, MPI_INTEGER, root, MPI_COMM_WORLD, code)
    call expect(all_are(words, n), 'broadcast')
    own = rank
    every = -1
    if (rank == root) then
      every(:, rank) = own
      call MPI_GATHER(MPI_IN_PLACE, 0, MPI_INTEGER, every, n, MPI_INTEGER, root, MPI_COMM_WORLD, code)
    else
      call MPI_GATHER(own, n, MPI_INTEGER, every, n, MPI_INTEGER, root, MPI_COMM_WORLD, code)
    end if
    do r = 0, ranks - 1
      if (rank == root) call expect(all_are(every(:, r), r), 'gather in place')
    end do
    every = -1
    every(:, rank) = own
    call MPI_ALLGATHER(MPI_IN_PLACE, 0, MPI_INTEGER, every, n, MPI_INTEGER, MPI_COMM_WORLD, code)
    do r = 0, ranks - 1
      call expect(all_are(every(:, r), r), 'allgather in place')
    end do
  end subroutine moves

  ! Two variables by their addresses.
  subroutine absolute(n)
    integer, intent(in) :: n
    integer, volatile, target :: first  ! a broadcast without its name changes it
    integer, target :: second(n)
    integer :: type, lengths(2), types(2)
    integer(kind=MPI_ADDRESS_KIND) :: displs(2)
    first = -1
    second = -1
    if (rank == 0) then
      first = n
      second = n + 1
    end if
    lengths = [1, n]
    types = MPI_INTEGER
    call MPI_GET_ADDRESS(first, displs(1), code)
    call MPI_GET_ADDRESS(second, displs(2), code)
    call MPI_TYPE_CREATE_STRUCT(2, lengths, displs, types, type, code)
    call MPI_TYPE_COMMIT(type, code)
    call MPI_BCAST(MPI_BOTTOM, 1, type, 0, MPI_COMM_WORLD, code)
    call MPI_TYPE_FREE(type, code)
    call expect(first == n .and. all_are(second, n + 1), 'broadcast of addresses')
  end subroutine absolute

  subroutine own_op()
    integer :: op, mine(2), joined(2), wanted(2), r
    call MPI_OP_CREATE(join, .false., op, code)
    mine = [rank + 2, rank + 5]
    call MPI_ALLREDUCE(mine, joined, 1, MPI_2INTEGER, op, MPI_COMM_WORLD, code)
    wanted = [2, 5]
    do r = 1, ranks - 1
      wanted = [wanted(1) * (r + 2), (r + 5) + wanted(2) * (r + 2)]
    end do
    call expect(all(joined == wanted), 'an op of the program')
    call MPI_OP_FREE(op, code)
  end subroutine own_op
end program fortran_program
